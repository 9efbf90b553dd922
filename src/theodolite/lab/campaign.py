"""Runs the cells of a command to their end: what the store has is not run again, what finishes is in it at once."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from theodolite.errors import ClaimLost, StoreError, TheodoliteError
from theodolite.lab.cell import Cell, Row
from theodolite.lab.condition import TRAINING, condition
from theodolite.lab.engines.pool import Died, Engine, Failed, Message, Paused
from theodolite.lab.group import Group
from theodolite.lab.run_cells import describe
from theodolite.lab.store.store import Store
from theodolite.lab.work import Context, Update, plan, trial_name
from theodolite.notebook import watching

logger = logging.getLogger(__name__)

RETRIES = 2  # of a group whose worker died
_BEAT = 5.0
_WAIT = 1.0

Watch = Callable[[float, float, str], None]  # steps done, steps in all, what is going on


@dataclass(frozen=True)
class Failure:
    """Cells that could not be run. `expected`: the sentence is about what the user gave."""

    cells: tuple[Cell, ...]
    sentence: str
    expected: bool


@dataclass
class Outcome:
    """Rows by key, in the order asked for, how many of them were there before, and what failed."""

    rows: dict[str, Row] = field(default_factory=dict)
    reused: int = 0
    failures: list[Failure] = field(default_factory=list)

    def of(self, cells: Sequence[Cell]) -> list[Row]:
        """In the order of the cells; one that failed says why, and is tried again by the next command."""
        reasons = {cell.key: failure.sentence for failure in self.failures for cell in failure.cells}
        return [
            self.rows.get(cell.key) or Row(cell, {}, error=reasons[cell.key])
            for cell in cells
            if cell.key in self.rows or cell.key in reasons
        ]


@dataclass(frozen=True)
class Listener:
    """Who wants to know: of progress, of every update with the group it is about, and of failures, at once."""

    watch: Watch = lambda done, total, label: None
    update: Callable[[Group, Update], None] = lambda group, update: None
    failure: Callable[[Failure], None] = lambda failure: None

    @classmethod
    def unless_given(cls) -> Listener:
        """A notebook shows how far it is; elsewhere nobody asked."""
        return cls() if (watch := watching()) is None else cls(watch)


def run_campaign(
    cells: Sequence[Cell],
    store: Store,
    engine: Engine,
    context: Context,
    settings: dict[str, Any],
    listener: Listener | None = None,
    max_failures: int | None = None,
    weigh: Callable[[Cell], float] | None = None,
) -> Outcome:
    """Every cell once. Cells another command is running are waited for; a dead command's are taken over.

    It ends early once `max_failures` cells have failed; what was running then is saved and stays open. `weigh` says
    what share of the progress a cell is, its steps unless given.
    """
    listener = listener or Listener.unless_given()
    campaign = _Campaign(cells, store, engine, context, settings, listener, max_failures, weigh or _steps)
    with _heart(store):
        try:
            campaign.run()
        finally:
            campaign.leave()
    found = campaign.outcome
    return replace(found, rows={cell.key: found.rows[cell.key] for cell in cells if cell.key in found.rows})


class _Campaign:
    def __init__(
        self,
        cells: Sequence[Cell],
        store: Store,
        engine: Engine,
        context: Context,
        settings: dict[str, Any],
        listener: Listener,
        max_failures: int | None,
        weigh: Callable[[Cell], float],
    ) -> None:
        self.cells = {cell.key: cell for cell in cells}
        self.store, self.engine, self.context = store, engine, context
        self.settings, self.listener, self.max_failures = settings, listener, max_failures
        self.weight = {key: weigh(cell) for key, cell in self.cells.items()}
        self.outcome = Outcome()
        self.failed: set[str] = set()
        self.running: dict[str, Group] = {}
        self.reached: dict[str, int] = {}  # per running group: its step
        self.recorded: dict[str, int] = {}  # per running group: updates, without a gap

    def run(self) -> None:
        self.outcome.rows = self._finished(self.cells)
        self.outcome.reused = len(self.outcome.rows)
        self.store.clean()
        if self._missing():
            self._plan()
        while not self._enough() and (self._missing() or self.running):
            self._submit()
            if not self.running:
                self._wait_for_others()
                continue
            for message in self.engine.poll(_WAIT):
                self._hear(message)
        self._watch("done")

    def leave(self) -> None:
        """However it ended: what runs saves its state and belongs to nobody."""
        for message in self.engine.stop():
            if isinstance(message, Update) and message.group in self.running:
                try:
                    self._record(self.running[message.group], message)
                except TheodoliteError as error:
                    logger.warning("the last state of a group was not recorded: %s", error)
        for group in self.running.values():
            try:
                self.store.release(group)
            except TheodoliteError as error:
                logger.warning("a group was not released: %s", error)

    def _missing(self) -> list[str]:
        return [key for key in self.cells if key not in self.outcome.rows and key not in self.failed]

    def _enough(self) -> bool:
        return self.max_failures is not None and len(self.failed) >= self.max_failures

    def _plan(self) -> None:
        missing = [self.cells[key] for key in self._missing()]
        self.store.plan(missing, lambda free: plan(free, self.settings, self.engine.workers))

    def _submit(self) -> None:
        while self.engine.free:
            group = self.store.claim(self._missing(), self._refusal)
            self._give_up_refused()
            if group is None:
                return
            self._start(replace(group, settings=self.settings))

    def _refusal(self, group: Group) -> str | None:
        """A store may come from anywhere: what is run is what this command names, and more members of its trainings."""
        if group.cells[0].measure == TRAINING:
            ours = len({(cell.measure, condition(cell.config)) for cell in group.cells}) == 1
        else:
            ours = all(cell.key in self.cells for cell in group.cells)
        reason = "holds other cells beside it: finish it with the command that began it, or choose another folder"
        return None if ours else f"its open group {group.id} {reason}"

    def _finished(self, keys: Iterable[str]) -> dict[str, Row]:
        found = self.store.finished(keys)
        self._give_up_refused()
        return found

    def _give_up_refused(self) -> None:
        reasons: dict[str, list[Cell]] = {}
        for key in self._missing():
            if key in self.store.refused:
                reasons.setdefault(self.store.refused[key], []).append(self.cells[key])
        for sentence, cells in reasons.items():
            self._failed(Failure(tuple(cells), sentence, expected=True))

    def _start(self, group: Group) -> None:
        training = group.cells[0].measure == TRAINING
        trial = self.store.trial(trial_name(group)) if training else None
        self.running[group.id] = group
        self.reached[group.id] = group.step
        self.recorded[group.id] = 0
        if not training:  # it says nothing before its end
            self._watch(_measuring(group.cells[0]))
        self.engine.submit(group, replace(self.context, trial=trial))

    def _wait_for_others(self) -> None:
        missing = self._missing()
        others = self.store.waiting_for(missing)
        if others:
            self._watch(f"waiting for {', '.join(others)}")
            time.sleep(_WAIT)
        self.outcome.rows |= self._finished(missing)
        if not others and self._missing():
            self._plan()

    def _hear(self, message: Message) -> None:
        group = self.running.get(message.group)
        if group is None:
            return
        try:
            if isinstance(message, Update):
                self._record(group, message)
                self._watch(_label(group, message))
            elif isinstance(message, Paused):
                self._start(group)
            elif isinstance(message, Died) and group.attempts < RETRIES:
                sentence = f"a worker died ({_exit(message)}); its group is tried again"
                logger.warning("%s", sentence)
                self.store.fail(group, sentence, "", retry=True)
                again = replace(group, attempts=group.attempts + 1)
                self._start(again)
            elif isinstance(message, Failed) and message.disk:
                raise StoreError(message.sentence)  # not the group's fault: it stays open with its checkpoint
            else:
                self._fail(group, message)
        except ClaimLost as error:
            logger.warning("%s", error)
            self.engine.drop(group.id)
            self._forget(group)

    def _record(self, group: Group, update: Update) -> None:
        if update.number != self.recorded[group.id]:
            return  # we were stopped while we wrote the one before: its rows must come before this checkpoint
        if update.trial is not None:
            self.store.keep_trial(trial_name(group), update.trial)
        if update.rows or update.checkpoint or update.done:
            self.store.record(group, update.rows, update.step, update.checkpoint, update.done)
        self.recorded[group.id] += 1
        if update.checkpoint:
            self.running[group.id] = replace(group, step=update.step, checkpoint=update.checkpoint)
        for row in update.rows:
            if row.cell.key in self.cells:
                self.outcome.rows.setdefault(row.cell.key, row)
        self.reached[group.id] = update.step
        self.listener.update(group, update)
        if update.done:
            self._forget(group)

    def _fail(self, group: Group, message: Failed | Died) -> None:
        if isinstance(message, Died):
            sentence = f"its worker died {group.attempts + 1} times ({_exit(message)})"
            trace, expected = "", False
        else:
            sentence, trace, expected = message.sentence, message.traceback, message.expected
        cells = tuple(cell for cell in group.cells if cell.key not in self.outcome.rows)
        self.store.fail(group, sentence, trace, retry=False)
        self._forget(group)
        self._failed(Failure(cells, sentence, expected))

    def _failed(self, failure: Failure) -> None:
        self.failed |= {cell.key for cell in failure.cells}
        self.outcome.failures.append(failure)
        self.listener.failure(failure)

    def _forget(self, group: Group) -> None:
        self.running.pop(group.id, None)
        self.reached.pop(group.id, None)
        self.recorded.pop(group.id, None)

    def _watch(self, label: str) -> None:
        total = sum(self.weight.values())
        done = sum(self.weight[key] for key in (*self.outcome.rows, *self.failed))
        for name, step in self.reached.items():
            for cell in self.running[name].cells:
                if cell.key in self.weight and cell.key not in self.outcome.rows:
                    done += self.weight[cell.key] * min(1.0, step / _steps(cell))
        self.listener.watch(float(min(done, total)), float(total), label)


def _steps(cell: Cell) -> int:
    return max(1, int(cell.config.get("schedule", {}).get("steps", 1)))


def _label(group: Group, update: Update) -> str:
    config = group.cells[0].config
    if group.cells[0].measure != TRAINING:
        return _measuring(group.cells[0])
    best = max((look.score for look in update.looks), default=None)
    score = "" if best is None else f", best {best:.2f}"
    note = f" ({update.note})" if update.note else ""
    return f"{config['net']} on {config['task']}: step {update.step}, {update.live} live{score}{note}"


def _measuring(cell: Cell) -> str:
    return f"{cell.measure} of {describe(cell)}" if "net" in cell.config else describe(cell)


def _exit(message: Died) -> str:
    code = message.code
    if message.reason:
        return message.reason
    if code is not None and code < 0:
        return "killed, often for want of memory" if code == -9 else f"signal {-code}"
    return f"exit code {code}"


@contextmanager
def _heart(store: Store) -> Iterator[None]:
    """Other commands see that this one lives."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(_BEAT):
            try:
                store.beat()
            except TheodoliteError as error:
                logger.warning("the heartbeat could not be written: %s", error)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
