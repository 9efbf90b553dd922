"""The section on symmetries: which changes of its input a network answers with the same change of its output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from theodolite.instruments.symmetry import GROUPS, HOLDS
from theodolite.lab.cell import Cell, Row
from theodolite.report import Answer, Column, Standing, Summary, Table
from theodolite.surveys.answers import Ability, failures, spelt, spoken
from theodolite.surveys.candidate import Candidate
from theodolite.surveys.section import Preset, Section, Setting

_ABILITIES = {
    "translation": Ability(
        "translation equivariance",
        "Is it equivariant to translations?",
        "cyclically shifted inputs give the same outputs, shifted",
    ),
    "permutation": Ability(
        "permutation equivariance",
        "Is it equivariant to permutations?",
        "tokens in another order give the same outputs in that order: the network sees a set",
    ),
    "time-shift": Ability(
        "time-shift equivariance",
        "Is it equivariant to shifts in time?",
        "zero tokens put before the input delay the outputs and change nothing else: the same step at every time",
    ),
}
_ACTS = {
    "translation": "tokens moved around in a circle",
    "permutation": "tokens in another order",
    "time-shift": "zero tokens put before the input, biases 0",
}
_DRAWS = {"quick": 3, "standard": 5, "full": 8}
_MEANING = (
    "The error is the distance between f(g·x) and g·f(x), relative to how much f varies: 0 means that the network "
    f"commutes with the group. An error of at most {HOLDS:g} in float64 counts as exact; it is the largest over group "
    "elements, inputs and draws of the weights."
)
_COLUMNS = (
    Column("net", "network", numeric=False),
    Column("group", "group", numeric=False),
    Column("error", "largest error", "relative; at most 1e-9 counts as a symmetry"),
    Column("median", "median error", "over group elements and draws"),
    Column("holds", "symmetric", numeric=False),
    Column("predicted", "predicted", "what the architecture implies", numeric=False),
    Column("agrees", "theory", "whether measurement and prediction meet", False, "agreement"),
    Column("reason", "why", numeric=False),
)


class SymmetrySection(Section):
    id = "symmetry"
    title = "Equivariance"

    def plan(self, net: Candidate | None, preset: Preset) -> Sequence[Cell]:
        assert net is not None
        return [Cell("symmetry", {**net.named(), "shape": net.measured(), "draws": _DRAWS[preset]})]

    def seconds(self, _cell: Cell) -> float:
        return 0.5

    def summarise(self, rows: Sequence[Row], setting: Setting) -> Summary:
        answers = [_ABILITIES["permutation"].failed(net, why) for net, why in setting.troubles.items()]
        body: list[dict[str, Any]] = []
        for row in rows:
            net = row.cell.config["net"]
            if row.error:
                answers.append(_ABILITIES["permutation"].failed(net, row.error))
                continue
            for group in GROUPS:
                found = row[group]
                if "not_applicable" in found:
                    body.append({"net": net, "group": group, "holds": "not applicable"})
                    body[-1]["reason"] = found["not_applicable"]
                    continue
                answers.append(_answer(net, group, found, row.cell.config["draws"]))
                body.append(_line(net, group, found))
        caption = "; ".join(f"{group}: {act}" for group, act in _ACTS.items()) + "."
        tables = [Table("Equivariance errors", _COLUMNS, body, caption)] if body else []
        return Summary(_headline(answers), tables, (), (_MEANING, *failures(rows, setting)), answers)


def _standing(holds: bool | None) -> Standing:
    return "unknown" if holds is None else "yes" if holds else "no"


def _answer(net: str, group: str, found: dict[str, Any], draws: int) -> Answer:
    diagnostics = found["diagnostics"]
    text = f"exact (error {found['value']:.1g})" if diagnostics["holds"] else f"error {found['value']:.2g}"
    predicted = "" if diagnostics["predicted"] is None else "yes" if diagnostics["predicted"] else "no"
    return _ABILITIES[group].answer(
        net,
        _standing(diagnostics["holds"]),
        text,
        predicted=predicted,
        agrees=diagnostics["agrees"],
        value="exact" if diagnostics["holds"] else text,
        setting=spelt({"draws": draws}),
    )


def _line(net: str, group: str, found: dict[str, Any]) -> dict[str, Any]:
    diagnostics = found["diagnostics"]
    known = diagnostics["predicted"] is not None
    return {
        "net": net,
        "group": group,
        "error": found["value"],
        "median": diagnostics["median"],
        "holds": diagnostics["holds"],
        "predicted": diagnostics["predicted"],
        "agrees": diagnostics["agrees"],
        "reason": diagnostics["reason"] if known else None,
    }


def _headline(answers: Sequence[Answer]) -> str:
    if all(answer.standing == "failed" for answer in answers):
        return "No network could be measured."
    held: dict[str, list[str]] = {group: [] for group in GROUPS}
    for answer in answers:
        for group, ability in _ABILITIES.items():
            if answer.question == ability.question and answer.standing == "yes":
                held[group].append(answer.net)
    groups = [f"{group} in {spoken(nets)}" for group, nets in held.items() if nets]
    return f"Exact symmetries: {'; '.join(groups)}." if groups else "No exact symmetry was found."


section = SymmetrySection()
