"""Machines against plain Python, a second simulator and their compiled networks."""

from __future__ import annotations

import re
from itertools import product

import pytest

from theodolite.errors import BadInput
from theodolite.witness.machines import machines
from theodolite.witness.turing import TuringMachine, compile_machine, machine_units, quadratic_through


def words(letters: str, longest: int) -> list[str]:
    return ["".join(w) for n in range(longest + 1) for w in product(letters, repeat=n)]


def simulate(machine: TuringMachine, word: str, steps: int) -> tuple[str, str]:
    """Another way: the whole configuration as one text, the state written before the scanned symbol."""
    left, state, right = "", machine.start, word or machine.blank
    for _ in range(steps):
        if state in (machine.accept, machine.reject):
            break
        state, written, move = machine.transitions.get((state, right[0]), (machine.reject, right[0], 0))
        right = written + right[1:]
        if move == 1:
            left, right = left + right[0], right[1:] or machine.blank
        elif move == -1:
            left, right = left[:-1], (left[-1:] or machine.blank) + right
    said = "accept" if state == machine.accept else "reject" if state == machine.reject else "running"
    return said, (left + right).strip(machine.blank)


@pytest.mark.parametrize("name", list(machines))
def test_the_simulator_agrees_with_another_and_with_plain_python(name):
    named = machines[name]
    for word in words(named.letters, 7):
        for steps in (0, 3, named.steps(len(word))):
            outcome, tape, taken = named.machine.run(word, steps)
            said, text = simulate(named.machine, word, steps)
            assert outcome == said
            assert taken <= steps
            spread = range(min(tape, default=0), max(tape, default=-1) + 1)
            assert "".join(tape.get(i, "_") for i in spread) == text
        accepted, left = named.truth(word)
        assert (outcome == "accept", outcome == "running") == (accepted, False)
        assert left is None or tape == left


@pytest.mark.parametrize("name", list(machines))
def test_the_compiled_network_agrees_on_every_word_at_every_number_of_steps(name):
    named, longest = machines[name], 5
    listed = words(named.letters, longest)
    seen = set()
    for steps in (1, 2, 3, 5, 8, named.steps(longest)):
        compiled = compile_machine(named.machine, steps, longest)
        answers = compiled.network(compiled.encode(listed))
        assert set(answers.unique().tolist()) <= {0.0, 1.0}
        for word, outcome, tape in zip(listed, compiled.outcomes(answers), compiled.tapes(answers), strict=True):
            right, left, _ = named.machine.run(word, steps)
            assert outcome == right
            assert tape == {place: symbol for place, symbol in left.items() if abs(place) < steps}
            seen.add(outcome)
    assert {"accept", "running"} <= seen


def test_a_machine_that_runs_off_to_the_left_is_compiled_too():
    machine = TuringMachine(("go", "yes", "no"), ("1", "_"), "_", {("go", "_"): ("go", "1", -1)}, "go", "yes", "no")
    compiled = compile_machine(machine, 4, 1)
    answers = compiled.network(compiled.encode(["", "1"]))
    assert compiled.outcomes(answers) == ["running", "reject"]
    assert compiled.tapes(answers)[0] == {0: "1", -1: "1", -2: "1", -3: "1"}


@pytest.mark.parametrize("name", list(machines))
def test_units_grow_as_one_quadratic_with_the_predicted_constants(name):
    machine = machines[name].machine
    units = {steps: compile_machine(machine, steps, 4).network.units for steps in (1, 2, 5, 9, 14)}
    assert units == {steps: machine_units(machine, steps) for steps in units}
    fit = quadratic_through(units)
    assert fit is not None
    a, b, c = fit
    rules = 3 * (len(machine.states) - 2)
    assert (a, b, c) == (rules + 2 + 6, -3, 2)


def test_a_fit_refuses_what_is_no_quadratic():
    assert quadratic_through({1: 1, 2: 8, 3: 27, 4: 64}) is None
    assert quadratic_through({1: 3, 2: 7, 3: 13, 4: 21}) == (1, 1, 1)
    with pytest.raises(BadInput, match="3 points"):
        quadratic_through({1: 1, 2: 2, 3: 3})


GOOD = {
    "states": ("q", "yes", "no"),
    "alphabet": ("0", "_"),
    "blank": "_",
    "transitions": {("q", "0"): ("yes", "0", 1)},
    "start": "q",
    "accept": "yes",
    "reject": "no",
}


@pytest.mark.parametrize(
    ("change", "words_"),
    [
        ({"start": "Q"}, "start state of the machine: no state is called 'Q'"),
        ({"transitions": {("q", "0"): ("yess", "0", 1)}}, "did you mean 'yes'"),
        ({"transitions": {("q", "1"): ("yes", "0", 1)}}, "no symbol is called '1'"),
        ({"transitions": {("q", "0"): ("yes", "0", 2)}}, "moves by 2"),
        ({"transitions": {("yes", "0"): ("q", "0", 0)}}, "has stopped"),
        ({"accept": "no"}, "accepts and rejects in one state"),
        ({"blank": "-"}, "no symbol is called '-'"),
        ({"states": ("q", "q", "yes", "no")}, "listed twice"),
    ],
)
def test_a_machine_that_is_none_is_refused_in_a_sentence(change, words_):
    TuringMachine(**GOOD)
    with pytest.raises(BadInput, match=words_):
        TuringMachine(**{**GOOD, **change})


def test_inputs_that_do_not_fit_are_refused():
    machine = TuringMachine(**GOOD)
    with pytest.raises(BadInput, match="no symbol is called 'x'"):
        machine.run("x", 1)
    with pytest.raises(BadInput, match="no symbol is called 'x'"):
        compile_machine(machine, 2, 2).encode(["0x"])
    with pytest.raises(BadInput, match="does not fit into 2 cells"):
        compile_machine(machine, 2, 2).encode(["000"])
    with pytest.raises(BadInput, match="steps = 0"):
        compile_machine(machine, 0, 2)
    with pytest.raises(BadInput, match="did you mean 'parity'"):
        machines["partiy"]


def test_a_tableau_too_large_is_refused_with_the_steps_that_fit():
    machine = machines["increment"].machine
    with pytest.raises(BadInput, match=r"1000000 steps of this machine need 13,999,997,000,002 units") as told:
        compile_machine(machine, steps=10**6, length=3)
    fits = int(re.search(r"use (\d+) steps", str(told.value))[1])  # type: ignore[index]
    assert machine_units(machine, fits) <= 5_000_000 < machine_units(machine, fits + 1)
