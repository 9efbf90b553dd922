"""Before a configuration is written: the model built from it has the promised parameters, and runs."""

from __future__ import annotations

from theodolite.advice.building.library import available
from theodolite.advice.families import FAMILIES
from theodolite.advice.result import Advice, short
from theodolite.errors import BadInput


def check_promise(advice: Advice) -> None:
    """Built where transformers is installed; else only families whose readers are tested against it are written."""
    if advice.advised is None:
        raise BadInput(f"there is no advised configuration to write, since {advice.silent}: leave out --out")
    promised = advice.advised.shape
    if not available():
        if promised.exact and promised.family in FAMILIES:
            return
        raise BadInput(
            f"the advised configuration of '{promised.family}' cannot be checked: install transformers, or leave "
            "out --out"
        )
    from theodolite.advice.building.build import CannotBuild, build
    from theodolite.advice.building.forward import CannotRun, run_forward
    from theodolite.advice.building.read import counted_parameters

    try:
        built = build(advice.config, "the advised configuration")
        count = counted_parameters(built)
        if promised.exact and count != promised.params:
            raise BadInput(
                f"the advised configuration is not written: transformers counts {count:,} parameters in it, and "
                f"{promised.params:,} were promised; leave out --out"
            )
        if abs(count / promised.params - 1) > 0.02:
            raise BadInput(
                f"the advised configuration is not written: transformers counts {short(count)} parameters in it, and "
                f"about {short(promised.params)} were promised; leave out --out"
            )
        run_forward(built)
    except CannotBuild as error:
        raise BadInput(
            f"the advised configuration is not written: transformers cannot build it ({error}); leave out --out"
        ) from None
    except CannotRun as error:
        raise BadInput(
            f"the advised configuration is not written: its model does not run ({error}); leave out --out"
        ) from None
