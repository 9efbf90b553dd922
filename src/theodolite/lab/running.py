"""Where the cells of a command run and where their rows are kept: what opens a campaign, for every command alike."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from theodolite.errors import BadInput
from theodolite.lab.campaign import Listener, Outcome, run_campaign
from theodolite.lab.cell import Cell
from theodolite.lab.condition import TRAINING
from theodolite.lab.engines.by_name import Cluster, check_engine, make_engine
from theodolite.lab.store.store import Store
from theodolite.lab.work import Context
from theodolite.training.earning import check_compiling
from theodolite.training.precision import check_precision


@dataclass(frozen=True)
class Running:
    """What no cell says: `out`, the folder of the store (without one nothing is kept), and the engine with its options.

    Options that contradict each other are refused here, before anything is planned.
    """

    device: str = "cpu"
    out: str | Path | None = None
    engine: str = "local"
    cluster: Cluster = field(default_factory=Cluster)
    workers: int | None = None
    threads: int | None = None  # of each worker
    chunk: int | None = None  # members of one batched call, 1 being the plain loop; found by a short trial otherwise
    max_failures: int | None = None  # stop after so many failed cells
    compile: str = "auto"  # training steps: on CUDA where a run earns it, always or never

    def __post_init__(self) -> None:
        check_engine(self.engine, self.device, self.workers, self.cluster)
        if self.chunk is not None and self.chunk < 1:
            raise BadInput(f"chunk must be at least 1, not {self.chunk}")
        check_compiling(self.compile)

    @contextmanager
    def open(self) -> Iterator[Store]:
        """The store in `out`, or one that is gone afterwards."""
        with ExitStack() as stack:
            folder = self.out if self.out is not None else stack.enter_context(tempfile.TemporaryDirectory())
            yield stack.enter_context(Store(folder))

    def run(
        self,
        cells: Sequence[Cell],
        store: Store,
        context: Context,
        settings: Mapping[str, Any] | None = None,
        listener: Listener | None = None,
        weigh: Callable[[Cell], float] | None = None,
    ) -> Outcome:
        """`run_campaign` on this engine; `settings` say how groups are run, besides the device."""
        self._check_precisions(cells, store)
        cluster = self.cluster.beside(self.out)
        engine = make_engine(self.engine, self.workers, self.threads, context.locations, self.device, cluster)
        chunk = {} if self.chunk is None else {"chunk": self.chunk}
        chosen = {} if self.compile == "auto" else {"compile": self.compile}
        settings = {"device": self.device, **chunk, **chosen, **(settings or {})}
        return run_campaign(cells, store, engine, context, settings, listener, self.max_failures, weigh)

    def _check_precisions(self, cells: Sequence[Cell], store: Store) -> None:
        """Of what is still to be run: a device that has no TF32 reads what another has finished."""
        training = (cell for cell in cells if cell.measure == TRAINING)
        rounded = {cell.key: cell.config["precision"] for cell in training if "precision" in cell.config}
        finished = store.finished(rounded) if rounded else {}
        for precision in {precision for key, precision in rounded.items() if key not in finished}:
            check_precision(precision, self.device)


def check_kept(out: str | Path | None) -> None:
    """Of a command that only reads what an earlier one finished."""
    if out is None:
        raise BadInput("what is kept lies in the folder of an earlier run: name it with --out")
    if not Path(out).is_dir():
        raise BadInput(f"there is no folder '{out}': what is kept lies in that of an earlier run, name it with --out")
