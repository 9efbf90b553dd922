"""Claims G15, G16 and G20: which architecture learns which class of tasks, and what a fixed number of steps cannot do.

Small versions of published tables: few steps, short inputs. `theodolite reproduce` has the tables at their size.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from theodolite.claims.comparing import members, scores, trained
from theodolite.claims.contract import EXPRESSIVITY, claim
from theodolite.claims.expressivity.g15_g16_at_full_size import HIERARCHY, THINKING, hierarchy_sides, thinking_order
from theodolite.claims.rule import Statistics, Verdict, outcome
from theodolite.claims.tables import chomsky_published as chomsky
from theodolite.claims.tables import universal_transformer_published as universal_transformer
from theodolite.claims.tables.length_generalisation_published import SOLVED
from theodolite.claims.tables.published_score import find
from theodolite.lab.cell import Cell, Row
from theodolite.statistics.intervals import difference_interval

# G15 — the hierarchy


_NETS: dict[str, dict[str, Any]] = {
    "rnn": {"width": 32},
    "lstm": {"width": 32},
    "stack-rnn": {"width": 32, "cell": 8},
    "tape-rnn": {"width": 32, "cell": 8},
    "transformer": {"width": 32, "depth": 2, "heads": 4, "causal": False},
}
_TABLED = {"parity-check": {}, "reverse": {"symbols": 2}, "duplicate": {}}
_UNTABLED = ("anbn", "unbounded-dyck")  # no figure of these architectures is at hand: reported
_COUNTING = ("lstm", "stack-rnn", "transformer")
_SEEDS, _LONGEST, _FAR = 6, 6, (12, 15, 18, 21, 24)
_LEVEL = 0.05


def _g15_cells() -> list[Cell]:
    schedule: dict[str, Any] = {"steps": 800, "batch": 32, "every": 100, "rows": 16, "unseen": _FAR, "to_the_end": True}
    asked = [(task, net) for task in _TABLED for net in _NETS] + [(t, n) for t in _UNTABLED for n in _COUNTING]
    return [
        cell
        for task, net in asked
        for cell in trained(
            net, _NETS[net], task, {"longest": _LONGEST, **_TABLED.get(task, {})}, _SEEDS, 3e-3, **schedule
        )
    ]


@claim(
    "G15",
    "An architecture's place in the hierarchy of automata tells which tasks, from regular to context-sensitive, it "
    "still solves on inputs longer than those of training.",
    EXPRESSIVITY + "computability; figures of Delétang et al. 2022",
    f"Six seeds of 800 steps on lengths 1 to {_LONGEST}, scored on {_FAR[0]} to {_FAR[-1]}; solved is a score of "
    f"{SOLVED} there. A published success is seen again if some seed solves it, and says nothing otherwise (the "
    "published score is the best of 30 runs of 1,000,000 steps). A published failure is contradicted if our share "
    "that solves is above 0 of those 30 (Fisher, one-sided), seen again if no seed solves it and so many learnt the "
    "lengths of training that half of them solving it is excluded (2^−m); both for all published failures, Holm at 5 "
    "%: six seeds are too few for the second, so that the full size decides. Fails if one is contradicted; holds if "
    "none is and at least half of the published figures were decided, successes and failures among them. Tasks "
    "without a published figure are reported.",
    _g15_cells,
    quote="Chomsky Hierarchy, Automata Hierarchy; Which neural networks are computationally universal (i.e. Turing "
    "Complete)?",
    kind="published table",
    statistics=Statistics(
        "6 seeds for each of 15 published figures",
        "Holm over both tests of all published failures, 5 %",
    ),
    heavy=True,
    full=HIERARCHY,
)
def _g15(rows: Sequence[Row]) -> Verdict:
    predicted: dict[str, float] = {}
    measured: dict[str, Any] = {}
    verdicts: dict[str, tuple[bool, bool | None]] = {}
    said = hierarchy_sides(rows, _LEVEL)
    for (task, net), seeds in members(rows, _task_and_net).items():
        name, far = f"{net} on {task}", scores(seeds, "unseen")
        solved = sum(score >= SOLVED for score in far)
        learnt = sum(member["status"] == "solved" for member in seeds)
        measured[name] = {"best": max(far), "solved": solved, "learnt": learnt, "of": len(far)}
        published = find(chomsky.SCORES, task, net, chomsky.SCORE)
        if published:
            predicted[name] = score = published[0].value
            verdicts[name] = score >= SOLVED, said[task, net]
    wrong = [name for name, (_, same) in verdicts.items() if same is False]
    same = {side: [n for n, (s, agrees) in verdicts.items() if s is side and agrees] for side in (True, False)}
    decided = len(wrong) + len(same[True]) + len(same[False])
    enough = 2 * decided >= len(verdicts) and bool(same[True]) and bool(same[False])
    others = [f"{n} {m['solved']} of {m['of']}" for n, m in measured.items() if n not in predicted]
    return Verdict(
        outcome(not wrong, enough),
        predicted,
        measured,
        f"Of {len(verdicts)} published figures {decided} were decided: {len(same[True])} successes and "
        f"{len(same[False])} failures seen again, {len(wrong)} contradicted{_listed(wrong)}. Without a figure, seeds "
        f"that solve longer inputs: {', '.join(others)}.",
    )


def _task_and_net(config: Mapping[str, Any]) -> tuple[str, str]:
    return config["task"], config["net"]


def _listed(names: Sequence[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


# G16 — the Universal Transformer


_THINKERS: dict[str, dict[str, Any]] = {
    "lstm": {"width": 32},
    "transformer": {"width": 32, "depth": 2, "heads": 4, "positions": "rotary"},
    "universal-transformer": {"width": 32, "depth": 3, "heads": 4, "positions": "rotary"},
}
_STRINGS = {"copy": {"symbols": 3}, "reverse": {"symbols": 3}, "decimal-addition": {"base": 2}}
_LEARNT = 0.9


def _g16_cells() -> list[Cell]:
    schedule: dict[str, Any] = {"steps": 1500, "batch": 16, "every": 100, "rows": 32, "unseen": (6, 8, 12, 16)}
    return [
        cell
        for task, args in _STRINGS.items()
        for net, shape in _THINKERS.items()
        for cell in trained(net, shape, task, {"longest": 4, **args}, 4, 3e-3, **schedule)
    ]


@claim(
    "G16",
    "On copy, reverse and addition the Universal Transformer is right on longer inputs than it was trained on, far "
    "more often than the Transformer and the LSTM.",
    EXPRESSIVITY + "Universal Transformers, results (Dehghani et al. 2019)",
    "Four seeds of 1,500 steps on lengths 1 to 4 (three symbols; addition in base 2), symbols right at lengths 6, 8, "
    "12 and 16. For each task and each rival the Universal Transformer's mean is above the rival's, as published, or "
    "below it (Welch, one-sided, twelve tests, Holm at 5 %). A task says nothing if no seed of the "
    f"Universal Transformer is right on {_LEARNT:.0%} of the symbols at the lengths of training; and where it is "
    f"published to be right on {SOLVED:.0%} or more and is not here, falling behind is no contradiction, for the paper "
    "trained far longer. Holds if all six pairs agree, fails if one contradicts.",
    _g16_cells,
    quote="char-acc of LSTM, Transformer, Universal Transformer: copy 0.45, 0.53, 0.91; reverse 0.66, 0.13, 0.96; "
    "addition 0.08, 0.07, 0.34",
    kind="published table",
    statistics=Statistics(
        "4 seeds for each of three networks on three tasks",
        "Holm over the twelve tests, 5 %",
    ),
    heavy=True,
    full=THINKING,
)
def _g16(rows: Sequence[Row]) -> Verdict:
    found = members(rows, _task_and_net)
    published = {
        (s.task, s.net): s.value for s in universal_transformer.SCORES if s.quantity == universal_transformer.SYMBOLS
    }
    own = "universal-transformer"
    pairs: dict[str, dict[str, Any]] = {}
    for task in _STRINGS:
        for rival in ("transformer", "lstm"):
            ours, theirs = (scores(found[task, net], "unseen") for net in (own, rival))
            pairs[f"{task}, less {rival}"] = {
                "published": published[task, own] - published[task, rival],
                "measured": statistics.fmean(ours) - statistics.fmean(theirs),
                "interval": difference_interval(ours, theirs),
                "learnt": max(scores(found[task, own], "accuracy")) >= _LEARNT,
                "short": published[task, own] >= SOLVED > statistics.fmean(ours),
            }
    order = {f"{task}, less {rival}": side for (task, rival), side in thinking_order(rows, _LEVEL).items()}
    agree, against = ([name for name, side in order.items() if side is wanted] for wanted in (True, False))
    unlearnt = [name for name, p in pairs.items() if not p["learnt"]]
    short = [name for name, p in pairs.items() if p["short"] and p["interval"][1] < 0 and name not in unlearnt]
    means = {
        f"{net} on {task}": [statistics.fmean(scores(seeds, field)) for field in ("accuracy", "unseen")]
        for (task, net), seeds in found.items()
    }
    return Verdict(
        outcome(not against, len(agree) == len(pairs)),
        {name: p["published"] for name, p in pairs.items()},
        {"differences": {n: [p["measured"], p["interval"]] for n, p in pairs.items()}, "trained, longer": means},
        f"{len(agree)} of {len(pairs)} pairs in the published order, {len(against)} against it{_listed(against)}, "
        f"{len(short)} behind after too short a training, {len(unlearnt)} where the Universal "
        f"Transformer learnt nothing. Means on trained and longer inputs: "
        f"{'; '.join(f'{name} {near:.2f}, {far:.2f}' for name, (near, far) in means.items())}.",
    )


# G20 — steps that grow with the input


_DEPTHS = (1, 2, 4)
_FIXED: dict[str, Any] = {"width": 32, "heads": 4, "positions": "sinusoidal"}
_WORD_LONGEST, _WORD_FAR = 14, (16, 18, 20, 24, 28)
_WORD_STEPS = {"transformer": 1000, "delta-net": 1200, "rnn": 4000}  # what takes about the same time
_STEPPERS: dict[str, dict[str, Any]] = {
    "rnn": {"width": 64},
    "delta-net": {"width": 32, "depth": 1, "heads": 2, "products": 2},
}
_WITNESS_LENGTH = 1000


def _word(net: str, shape: dict[str, Any], group: str = "A5") -> tuple[Cell, ...]:
    arguments = {"group": group, "generators": "two", "longest": _WORD_LONGEST}
    schedule: dict[str, Any] = {"batch": 32, "every": 200, "rows": 32, "unseen": _WORD_FAR}
    schedule["steps"] = _WORD_STEPS[net]
    return trained(net, shape, "word-problem", arguments, 4, 3e-3, **schedule)


def _g20_cells() -> list[Cell]:
    return [
        Cell("word-problem-witness", {"net": "rnn", "group": "A5", "length": _WITNESS_LENGTH, "samples": 512}),
        *(cell for depth in _DEPTHS for cell in _word("transformer", {**_FIXED, "depth": depth})),
        *(cell for net, shape in _STEPPERS.items() for cell in _word(net, shape)),
        *_word("transformer", {**_FIXED, "depth": 2}, "Z60"),
        *_word("rnn", _STEPPERS["rnn"], "Z60"),
    ]


@claim(
    "G20",
    "A Transformer of fixed depth is not universal: products of many elements of A5 are beyond it; networks whose "
    "number of steps grows with the input have no such limit.",
    EXPRESSIVITY + "Universal Transformers, expressivity",
    "That no fixed depth does it for all lengths is a theorem, unless TC⁰ = NC¹, and no experiment decides it. (1) "
    f"Explicit weights of an RNN must be right on every drawn input of length {_WITNESS_LENGTH}. (2) Trained on "
    f"lengths 1 to {_WORD_LONGEST}, four seeds, for about the same time each; the length solved is the greatest, of 1 "
    f"to {_WORD_FAR[-1]}, up to which {SOLVED:.0%} of all prefix products are right. It must grow from depth 1 to "
    "depth 4 (95 % interval of the difference of means, Welch, above 0), stay below the greatest in every "
    "Transformer, and be greater in the better of two networks whose steps grow with the input, RNN or DeltaNet, than "
    "in the Transformer of depth 4 (97.5 % interval above 0, since it is the better of two). Fails if (1) does; "
    "undecided if an interval holds 0 or a Transformer solves the greatest length, which contradicts no theorem on all "
    "lengths. Z60, a solvable group of as many elements, is reported as a control.",
    _g20_cells,
    quote="this property implies that the standard Transformer cannot be computationally universal. When choosing a "
    "number of steps as a function of the input length, however, the Universal Transformer does not suffer from this "
    "limitation.",
    kind="theorem",
    statistics=Statistics(
        "4 seeds a network",
        "two for the lead of the better of two networks; both intervals must lie above 0, and failing is exact",
    ),
    heavy=True,
)
def _g20(rows: Sequence[Row]) -> Verdict:
    witness, learnt = rows[0], members(rows[1:], _stepper)
    solved = {name: [solved_length(member["by_length"]) for member in seeds] for name, seeds in learnt.items()}
    lengths, control = ({name: solved[group, name] for group, name in solved if group == one} for one in ("A5", "Z60"))
    shallow, deep = (lengths[f"transformer of depth {d}"] for d in (_DEPTHS[0], _DEPTHS[-1]))
    stepping = max((lengths[net] for net in _STEPPERS), key=statistics.fmean)
    growth, lead = difference_interval(deep, shallow), difference_interval(stepping, deep, 0.975)
    reached = [n for n, found in lengths.items() if n not in _STEPPERS and max(found) >= _WORD_FAR[-1]]
    exact = witness["expressible"] is True and witness["errors"] == 0
    shown = "; ".join(f"{name} {', '.join(map(str, found))}" for name, found in lengths.items())
    return Verdict(
        outcome(exact, not reached and growth[0] > 0 and lead[0] > 0),
        {"witness errors": 0, "length grows with depth": True, "steps that grow with the input reach further": True},
        {
            "witness": {name: witness[name] for name in ("units", "verified_on", "errors")},
            "lengths solved": lengths,
            "growth from depth 1 to 4": growth,
            "lead of growing steps": lead,
            "Z60": control,
        },
        f"An RNN of {witness['units']} units is right on {witness['verified_on']} products of {_WITNESS_LENGTH} "
        f"elements of A5. Lengths solved after training on up to {_WORD_LONGEST}: {shown}. Interval of the growth from "
        f"depth 1 to 4: {growth[0]:.1f} to {growth[1]:.1f}; of the lead of growing steps: {lead[0]:.1f} to "
        f"{lead[1]:.1f}.",
    )


def _stepper(config: Mapping[str, Any]) -> tuple[str, str]:
    """The group that it multiplies in, and what it is called."""
    net = config["net"]
    named = f"transformer of depth {config['shape']['depth']}" if net == "transformer" else net
    return config["task_args"]["group"], named


def solved_length(by_length: Sequence[Sequence[Any]], bar: float = SOLVED) -> int:
    """The greatest length up to which, of those looked at, every score reaches the bar; 0 if the first does not."""
    reached = 0
    for length, score in sorted((int(n), s) for n, s in by_length):
        if score is None or not score >= bar:  # one of a member that diverged is no number
            break
        reached = length
    return reached
