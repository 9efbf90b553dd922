"""Three sentences on all networks, for someone who reads nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from theodolite.report.answer import Answer, Question, ability, own, short_names, tally

_MOST = 3  # abilities named in one list


def three_sentences(questions: Sequence[Question], nets: Sequence[str]) -> list[str]:
    """Who has most of what was asked; what all, none and only some have; how the user's net, or theory, fares.

    Parameters:
        questions: every question with its answers, as `gather` gives them.
        nets: in the order of the report.
    """
    names = short_names(nets)
    shown = {net: [q for q in questions if _yes(q, net)] for net in nets}
    return [
        sentence
        for sentence in (
            _most(questions, shown, names),
            _apart(questions, names),
            *(_of_own(net, questions, shown, names) for net in nets if own(net)),
            _theory(questions),
        )
        if sentence
    ][:3]


def _most(questions: Sequence[Question], shown: Mapping[str, Sequence[Question]], names: Mapping[str, str]) -> str:
    if len(shown) < 2:
        return "".join(f"{names[net]} shows {len(yes)} of {len(questions)} abilities." for net, yes in shown.items())
    counts = {net: len(yes) for net, yes in shown.items()}
    best, least = max(counts.values()), min(counts.values())
    if best == least:
        return f"Each network shows {best} of the {len(questions)} abilities asked for."
    first, last = ([names[net] for net in counts if counts[net] == end] for end in (best, least))
    return (
        f"Of {len(questions)} abilities {_listed(first)} {_verb(first)} the most, {best}, "
        f"and {_listed(last)} the fewest, {least}."
    )


def _apart(questions: Sequence[Question], names: Mapping[str, str]) -> str:
    if len(names) < 2:
        return ""
    everyone, nobody, some = [], [], []
    for question in questions:
        decided = [one for one in question.answers.values() if one.standing in ("yes", "no", "partly", "unlearnt")]
        if len(decided) < 2:
            continue
        yes = [names.get(one.net, one.net) for one in decided if one.standing == "yes"]
        what = _named(question)
        if len(yes) == len(decided):
            everyone.append(what)
        elif not yes:
            nobody.append(what)
        else:
            some.append((abs(2 * len(yes) - len(decided)), f"{what} (only {_listed(yes)})" if len(yes) < 3 else what))
    parts = []
    if some:
        told = [words for _, words in sorted(some, key=lambda one: one[0])]
        parts.append(f"they differ most in {_listed(told[:_MOST])}")
    if everyone:
        parts.append(f"all show {_listed(everyone[:_MOST])}")
    if nobody:
        parts.append(f"none shows {_listed(nobody[:_MOST], 'or')} here")
    told = "; ".join(parts)
    return told[:1].upper() + told[1:] + "." if told else ""


def _of_own(
    net: str, questions: Sequence[Question], shown: Mapping[str, Sequence[Question]], names: Mapping[str, str]
) -> str:
    asked = [q for q in questions if net in q.answers]
    failed = sum(q.answers[net].standing == "failed" for q in asked)
    ahead = [_named(q) for q in shown[net] if not any(_yes(q, other) for other in q.answers if other != net)]
    decided = [q for q in asked if q.answers[net].standing in ("no", "partly", "unlearnt")]
    behind = [_named(q) for q in decided if sum(_yes(q, other) for other in q.answers) > (len(q.answers) - 1) / 2]
    parts = [f"yours, {names[net]}, shows {len(shown[net])} of {len(asked)}"]
    if ahead:
        parts.append(f"it alone shows {_listed(ahead[:_MOST])}")
    if behind:
        parts.append(f"it lacks {_listed(behind[:_MOST])}, which most others show")
    if failed:
        parts.append(f"{failed} could not be measured of it")
    told = "; ".join(parts)
    return told[:1].upper() + told[1:] + "."


def _theory(questions: Sequence[Question]) -> str:
    words = tally(one for question in questions for one in question.answers.values())
    return f"Theory: {words}." if words else ""


def _yes(question: Question, net: str) -> bool:
    answer = question.answers.get(net)
    return answer is not None and answer.standing == "yes"


def _named(question: Question) -> str:
    first: Answer = next(iter(question.answers.values()))
    return ability(first)


def _verb(names: Sequence[str]) -> str:
    return "shows" if len(names) == 1 else "show"


def _listed(names: Iterable[str], joint: str = "and") -> str:
    *front, last = names
    return f"{', '.join(front)} {joint} {last}" if front else last
