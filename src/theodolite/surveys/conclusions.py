"""A survey in three sentences for someone who reads nothing else: what is learnt, what tells networks apart, and cost.

Made from answers and costs by rules. What is not settled (not known, failed, not learnt in these steps) is not told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from theodolite.lab.cell import Row
from theodolite.report import Answer
from theodolite.report.answer import own, short_names
from theodolite.surveys.answers import spoken

_MOST = 3  # parts of one sentence
_NOTABLE = 1.25  # times that differ by less are told as about the same
_SETTLED = ("yes", "no", "partly")
_STATE = "constant state size"


def conclusions(
    nets: Sequence[str], learnt: Sequence[Answer], others: Sequence[Answer], costs: Sequence[Row]
) -> tuple[str, ...]:
    """At most three. `learnt` are answers on training, `others` all the rest, `costs` rows of the section on cost."""
    names = {net: f"yours ({short})" if own(net) else short for net, short in short_names(nets).items()}
    mine = [net for net in nets if own(net)]
    apart = _own_apart([*learnt, *others], mine, names) if mine else _apart(others, names)
    told = (_learning(learnt, names), apart, _cost(costs, others, names))
    return tuple(
        sentence.replace("yours", "Yours", 1) if sentence.startswith("yours") else sentence
        for sentence in told
        if sentence
    )


def _learning(answers: Sequence[Answer], names: Mapping[str, str]) -> str:
    """Of the largest group of nets that were asked the same."""
    asked = {net: {one.question: one for one in answers if one.net == net} for net in names}
    groups = [[net for net in asked if asked[net].keys() == mine.keys()] for mine in asked.values() if mine]
    group = max(groups, key=lambda nets: (len(nets), len(asked[nets[0]])), default=[])
    found = {net: asked[net] for net in group}
    most = found[group[0]] if group else {}
    counts = {
        net: [sum(one.standing == s for one in mine.values()) for s in ("yes", "partly")] for net, mine in found.items()
    }
    if not any(sum(count) for count in counts.values()):
        return ""
    order = sorted(counts, key=lambda net: counts[net], reverse=True)
    best = order[0]
    reliably = [_task(one) for one in found[best].values() if one.standing == "yes"]
    beyond = (
        ", also on longer inputs than any in training" if any(" longer " in one.text for one in most.values()) else ""
    )
    listed = f" ({spoken(reliably)})" if reliably else ""
    told = sorted(order[1:], key=lambda net: not own(net))[:_MOST]  # the user's in any case
    rest = [f"{names[net]} {_counted(*counts[net])}" for net in order if net in told]
    first, second = counts[best]
    learnt = f"{first or 'none'} of {len(most)} tasks in every run{beyond}{listed}"
    partly = f", and {second} in part" if second else ""
    return (
        f"In training as short as this, {names[best]} learns {learnt}{partly}{''.join(f'; {each}' for each in rest)}."
    )


def _counted(reliably: int, partly: int) -> str:
    return f"{reliably or 'none'}" + (f", and {partly} in part" if partly else "")


def _task(answer: Answer) -> str:
    return answer.ability.removeprefix("length generalisation on ").removeprefix("learnability of ")


def _settled(answers: Sequence[Answer]) -> dict[str, dict[str, str]]:
    """Standing by ability and net, of abilities on which several nets have a settled answer and none another."""
    asked: dict[str, dict[str, str]] = {}
    for answer in answers:
        asked.setdefault(answer.ability, {})[answer.net] = answer.standing
    return {a: found for a, found in asked.items() if len(found) > 1 and set(found.values()) <= set(_SETTLED)}


def _apart(answers: Sequence[Answer], names: Mapping[str, str]) -> str:
    """Abilities that some have and all others have not, by who has them; the state is told with the cost."""
    having: dict[tuple[str, ...], list[str]] = {}
    for ability, found in _settled(answers).items():
        if set(found.values()) == {"yes", "no"} and ability != _STATE:
            having.setdefault(tuple(net for net in found if found[net] == "yes"), []).append(ability)
    told = [
        f"nly {spoken([names[net] for net in nets])} {'have' if len(nets) > 1 else 'has'} {spoken(abilities)}"
        for nets, abilities in having.items()
    ]
    return f"O{'; o'.join(told[:_MOST])}." if told else ""


def _own_apart(answers: Sequence[Answer], mine: Sequence[str], names: Mapping[str, str]) -> str:
    """What the user's net alone has, and alone lacks; where there is nothing, the net that it answers most like."""
    settled = _settled(answers)
    parts = []
    for net in mine:
        sure = {a: found for a, found in settled.items() if net in found and _stands_out(a, net, answers)}
        alone = [a for a, found in sure.items() if found[net] == "yes" and list(found.values()).count("yes") == 1]
        behind = {
            a: found[net]
            for a, found in sure.items()
            if found[net] != "yes" and list(found.values()).count("yes") == len(found) - 1
        }
        lacks, partly = ([a for a, standing in behind.items() if standing == s] for s in ("no", "partly"))
        told = [f"alone has {spoken(alone)}"] if alone else []
        told += [f"alone lacks {spoken(lacks)}"] if lacks else []
        told += [f"alone has {spoken(partly)} only in part"] if partly else []
        parts += [f"{names[net]} {'; it '.join(told)}"] if told else []
    return "; ".join(parts[:_MOST]) + "." if parts else _nearest(mine[0], settled, names)


def _stands_out(ability: str, net: str, answers: Sequence[Answer]) -> bool:
    """Whether the net's number is surely another than each other's; where one has no interval, marks speak."""
    asked = {one.net: one.interval for one in answers if one.ability == ability}
    mine = asked.pop(net)
    others = [interval for interval in asked.values() if interval is not None]
    return mine is None or all(high < mine[0] or mine[1] < low for low, high in others)


def _nearest(net: str, settled: Mapping[str, Mapping[str, str]], names: Mapping[str, str]) -> str:
    """The nets that answer most like this one."""
    shared = {
        other: [found[net] == found[other] for found in settled.values() if net in found and other in found]
        for other in names
        if other != net
    }
    shared = {other: same for other, same in shared.items() if any(same)}
    if not shared:
        return ""
    alike = {other: (sum(same) / len(same), len(same)) for other, same in shared.items()}
    near = [other for other in alike if alike[other] == max(alike.values())]
    same = shared[near[0]]
    does = "does" if len(near) == 1 else "do"
    listed = spoken([names[other] for other in near])
    return f"{names[net]} answers as {listed} {does} in {sum(same)} of {len(same)} settled questions, the nearest here."


def _cost(rows: Sequence[Row], answers: Sequence[Answer], names: Mapping[str, str]) -> str:
    times: dict[str, dict[str, float]] = {}
    for row in rows:
        found = {} if row.error else row.result.get("training_seconds_per_token", {})
        if found:
            per = found["diagnostics"].get("per", "token")
            times.setdefault(per, {})[row.cell.config["net"]] = 1e6 * found["value"]
    parts = []
    for per, of in times.items():
        if len(of) > 1:
            parts.append(_times(per, of, names))
    state = {one.net: one.standing for one in answers if one.ability == _STATE}
    constant, growing = ([names[net] for net, standing in state.items() if standing == s] for s in ("yes", "no"))
    if constant and growing:
        begins = "the" if parts else "The"
        parts.append(f"{begins} state carried along is constant in {spoken(constant)}, and grows in {spoken(growing)}")
    return "; ".join(parts) + "." if parts else ""


def _times(per: str, of: Mapping[str, float], names: Mapping[str, str]) -> str:
    least, most = min(of, key=lambda net: of[net]), max(of, key=lambda net: of[net])
    if of[most] < _NOTABLE * of[least]:
        return f"Training takes about the same time for all, {of[least]:.3g} to {of[most]:.3g} µs a {per}"
    mine = [f", {names[net]} {of[net]:.3g}" for net in of if own(net) and net not in (least, most)]
    return (
        f"Training takes {of[least]:.3g} µs a {per} in {names[least]}, the fastest{''.join(mine)}, and "
        f"{of[most]:.3g} in {names[most]}, the slowest"
    )
