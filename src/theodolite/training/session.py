"""The training of one group, block by block: it can be stopped at the end of any block and taken up again exactly.

Every draw is a function of the group's seed and the number of the block or evaluation, so the generator's state is
those two numbers.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor

from theodolite.device import cpu_threads
from theodolite.errors import BadInput
from theodolite.measurement import seed_of
from theodolite.nets.load import seeded
from theodolite.tasks.contract import Batch, Task, lengths_between
from theodolite.training.compile_choice import CompileChoice
from theodolite.training.earning import Compiling
from theodolite.training.evaluation import Evaluation, evaluate
from theodolite.training.group import Finished, Look, MemberSpec, Schedule
from theodolite.training.members import Members
from theodolite.training.optimiser import Optimiser, Rule
from theodolite.training.outcome import Status, inside, scores
from theodolite.training.pairing import Pairing
from theodolite.training.precision import Precision, multiplying
from theodolite.training.program import Batching, Program

_BLOCK = 16  # steps drawn at once
_CHECKED = 8  # lengths looked at while training
_TRAINED = 40  # lengths of the training range in the last evaluation
_RECOMPILE_BELOW = 0.35  # and compiled ones, which take far longer, when so few are left
_RECAPTURE_BELOW = 0.75  # captured steps are made anew, which takes seconds, when this share of their members is left


class Session:
    """A group at some step. `advance` runs one block; `state` and `restore` carry it over to another process."""

    def __init__(
        self,
        pairing: Pairing,
        members: Sequence[MemberSpec],
        schedule: Schedule,
        rule: Rule,
        batching: Batching,
        device: torch.device,
        compiling: Compiling = "never",
        precision: Precision = "float32",
    ) -> None:
        # Equal rates stand together, for the optimiser; the order is part of what a seed means.
        self.specs = sorted(members, key=lambda m: (m.rates.lr, m.rates.weight_decay))
        self.schedule = schedule
        self.task: Task = pairing.task
        self.device = device
        self.precision: Precision = precision
        self.step = 0
        self.seed = seed_of([m.key for m in self.specs])
        self.curves: dict[str, list[list[float | int | None]]] = {m.key: [] for m in members}
        self.seconds: dict[str, float] = {m.key: 0.0 for m in members}
        self.solved: dict[str, int] = {}
        self.gone: set[str] = set()  # members that are done and still in the program
        self.early: dict[str, dict[str, Any]] = {}  # what members gave that were done before the end
        self.end: tuple[dict[str, Tensor], dict[str, str]] | None = None  # the state after the last step, if it grows
        self._owes_look = False
        modules = [pairing.build(m.seed) for m in self.specs]
        stacked = Members(pairing, modules, device, batching.batched)
        self.optimiser = Optimiser(rule, [m.rates for m in self.specs], stacked.parameters)
        self.compiling = CompileChoice(compiling, pairing, device)
        self.program = Program(stacked, self.optimiser, self.compiling.begin(batching), device)
        self._lengths = self._draw_lengths()

    @property
    def done(self) -> bool:
        return len(self.gone) == len(self.specs)

    @property
    def live(self) -> list[MemberSpec]:
        return [m for m in self.specs if m.key not in self.gone]

    @property
    def threads(self) -> int | None:
        return self.program.batching.threads

    @property
    def note(self) -> str:
        """What takes time beside training."""
        return self.compiling.note(self.program)

    def advance(self) -> tuple[list[Finished], list[Look]]:
        """Train to the end of the next block; look at the members where that is due; hand over those that are done."""
        started = time.perf_counter()
        # A net of the user's may draw (dropout): its draws follow from the step too.
        draws = seeded(seed_of([self.seed, "net", self.step]), self.device)
        with cpu_threads(self.threads), draws, multiplying(self.precision, self.device):
            looks: list[Look] = []
            finished: list[Finished] = []
            if self.step < self.schedule.steps and not self._owes_look:
                self._train_block()
                self.compiling.trained(time.perf_counter() - started)
            over = self.step >= self.schedule.steps
            self._owes_look = over and self.schedule.grows
            if self._owes_look:
                self.end = self.state()
            if over or self.step % self.schedule.every == 0:
                self._choose_compiling()
                looks, done = self._look(over)
                self._charge(started)
                started = time.perf_counter()
                finished = self._finish(done, started)
            else:
                self._charge(started)
        return finished, looks

    def state(self) -> tuple[dict[str, Tensor], dict[str, str]]:
        """Tensors and texts, from which `restore` goes on."""
        tensors = {f"parameter.{n}": p for n, p in self.program.members.parameters.items()}
        tensors |= {f"buffer.{n}": b for n, b in self.program.members.buffers.items()}
        for kind, moments in enumerate(self.optimiser.moments):
            tensors |= {f"moment{kind}.{n}": m for n, m in moments.items()}
        facts = {
            "step": self.step,
            "members": [m.key for m in self.specs],
            "gone": sorted(self.gone),
            "curves": {m.key: self.curves[m.key] for m in self.live},
            "seconds": {m.key: self.seconds[m.key] for m in self.live},
            "solved": {m.key: self.solved[m.key] for m in self.live if m.key in self.solved},
            "batching": asdict(self.program.batching),
        }
        if self.schedule.grows:
            facts |= {"early": self.early, "owes_look": self._owes_look}
        return tensors, {"session": json.dumps(facts)}

    def restore(self, tensors: Mapping[str, Tensor], texts: Mapping[str, str]) -> None:
        if "session" not in texts:
            raise BadInput("the checkpoint is not one of a training session: remove it and start again")
        facts = json.loads(texts["session"])
        places = {m.key: i for i, m in enumerate(self.specs)}
        if not set(facts["members"]) <= set(places):
            raise BadInput("the checkpoint belongs to another group: remove it and start again")
        live = [places[key] for key in facts["members"]]
        if len(live) < len(self.specs):
            self._keep(live)
        stacked = self.program.members
        for name, parameter in stacked.parameters.items():
            parameter.copy_(_fitting(tensors, f"parameter.{name}", parameter))
        for name, buffer in stacked.buffers.items():
            buffer.copy_(_fitting(tensors, f"buffer.{name}", buffer))
        for kind, moments in enumerate(self.optimiser.moments):
            for name, moment in moments.items():
                moment.copy_(_fitting(tensors, f"moment{kind}.{name}", moment))
        self.step = int(facts["step"])
        self.gone = set(facts["gone"])
        self.curves |= {k: list(v) for k, v in facts["curves"].items()}
        self.seconds |= facts["seconds"]
        self.solved |= facts["solved"]
        self.early = facts.get("early", {})
        self._owes_look = facts.get("owes_look", False)
        self.program.run_as(recorded_batching(texts))

    def _train_block(self) -> None:
        """Blocks end where a look is due, so their number follows from the step."""
        stop = min(
            self.step + _BLOCK, self.schedule.steps, (self.step // self.schedule.every + 1) * self.schedule.every
        )
        generator = self._generator("block", self.step)
        batches: list[Batch] = []
        for length in self._lengths[self.step : stop]:
            batches.append(self.task.sample(len(self.specs), self.schedule.batch, length, generator))
        self.program.train(batches, self.step + 1)
        self.step = stop

    def _choose_compiling(self) -> None:
        chosen = self.compiling.at_look(self.program, self.step, self.schedule.steps - self.step, self.like_a_step)
        if chosen != self.program.batching:
            self.program.run_as(chosen)

    def like_a_step(self, length: int | None) -> Batch:
        """A batch in the shape of one that is trained on."""
        return self.task.sample(len(self.specs), self.schedule.batch, length, self._generator("shape", 0))

    def _look(self, over: bool) -> tuple[list[Look], list[tuple[int, Status]]]:
        """A first look at few rows; who seems to have solved it is confirmed by the last evaluation, not here."""
        shown = self._evaluate(spread(self.task, _CHECKED), "look")
        score, loss, finite = shown.mean.tolist(), shown.loss.tolist(), shown.finite.tolist()
        looks, done = [], []
        for i, member in enumerate(self.specs):
            if member.key in self.gone:
                continue
            value = loss[i] if finite[i] and math.isfinite(loss[i]) else None
            looks.append(Look(member.key, self.step, value, score[i]))
            self.curves[member.key].append([self.step, value, score[i] if math.isfinite(score[i]) else None])
            if value is None:
                done.append((i, "diverged"))
            elif score[i] >= self.task.spec.solved and not self.schedule.to_the_end:
                done.append((i, "solved"))
            elif over:
                done.append((i, "unsolved"))
            if value is not None and score[i] >= self.task.spec.solved:
                self.solved.setdefault(member.key, self.step)
        return looks, done

    def _finish(self, done: list[tuple[int, Status]], started: float) -> list[Finished]:
        """The last evaluation of members that are done. A member that only seemed to have solved it trains on."""
        if not done:
            return []
        last = Program(
            self.program.members.select(self._places([i for i, _ in done])), None, self.program.batching, self.device
        )
        trained = self._evaluate(spread(self.task, _TRAINED), "last", last)
        unseen = self._evaluate(self.schedule.unseen, "unseen", last) if self.schedule.unseen else None
        confirmed = (trained.mean >= self.task.spec.solved).tolist()
        sound = (trained.finite & trained.loss.isfinite()).tolist()
        finished = []
        for row, (i, status) in enumerate(done):
            key = self.specs[i].key
            if status == "solved" and not confirmed[row]:
                self.solved.pop(key, None)
                if self.step < self.schedule.steps:
                    continue
            if not sound[row]:
                status = "diverged"
            elif status != "diverged":
                status = "solved" if confirmed[row] else "unsolved"
            if status == "solved":
                self.solved.setdefault(key, self.step)
            result = self._result(key, row, status, last, trained, unseen)
            if self.step < self.schedule.steps:
                self.early[key] = result
            finished.append(Finished(key, result, 0.0, str(self.program.batching), last.members.state(row)))
        share = (time.perf_counter() - started) / max(1, len(finished))
        self.gone |= {f.key for f in finished}
        self._regroup()
        return [replace(f, seconds=self.seconds[f.key] + share) for f in finished]

    def _result(
        self,
        key: str,
        row: int,
        status: Status,
        last: Program,
        trained: Evaluation,
        unseen: Evaluation | None,
    ) -> dict[str, Any]:
        return {
            **scores(self.task.spec, status, row, trained, unseen),
            "steps": self.step,
            "solved_at": self.solved.get(key) if status == "solved" else None,
            "curve": self.curves[key],
            "parameters": self.program.members.parameter_count,
            **inside(last, row, self.schedule.rows, self._generator("convergence", self.step)),
        }

    def _evaluate(self, lengths: Sequence[int | None], what: str, program: Program | None = None) -> Evaluation:
        """Vectors have one place to look at, so they get as many rows there as strings get over their lengths."""
        rows = self.schedule.rows * (1 if self.task.spec.kind == "sequence" else 32)
        return evaluate(program or self.program, lengths, rows, self._generator(what, self.step))

    def _places(self, members: list[int]) -> Tensor:
        return torch.tensor(members, dtype=torch.int64, device=self.device)

    def _regroup(self) -> None:
        """Members that are done leave the program: at once, or in batches where steps are captured."""
        live = [i for i, m in enumerate(self.specs) if m.key not in self.gone]
        batching = self.program.batching
        share = _RECOMPILE_BELOW if batching.compiled else _RECAPTURE_BELOW if batching.graphs else 1.0
        if self.gone and len(live) <= share * len(self.specs):
            self.program.batching = self.compiling.with_fewer(batching)
            self._keep(live)
            self.gone.clear()

    def _keep(self, live: list[int]) -> None:
        self.specs = [self.specs[i] for i in live]
        self.program.keep(self._places(live))

    def _charge(self, started: float) -> None:
        """The time since `started`, shared by the members that are trained."""
        live = self.live
        share = (time.perf_counter() - started) / max(1, len(live))
        for member in live:
            self.seconds[member.key] += share

    def _generator(self, what: str, number: int) -> torch.Generator:
        return torch.Generator(self.device).manual_seed(seed_of([self.seed, what, number]))

    def _draw_lengths(self) -> list[int | None]:
        """One length a step, uniform over those of training."""
        lengths = self.task.spec.lengths
        if lengths is None:
            return [None] * self.schedule.steps
        generator = torch.Generator().manual_seed(seed_of([self.seed, "lengths"]))
        there = lengths_between(self.task, *lengths)
        drawn = torch.randint(len(there), (self.schedule.steps,), generator=generator)
        return [there[place] for place in drawn.tolist()]


def recorded_batching(texts: Mapping[str, str]) -> Batching:
    """How the group of a checkpoint was run: it goes on that way, whatever a new trial would find."""
    return Batching(**json.loads(texts["session"])["batching"])


def spread(task: Task, count: int) -> Sequence[int | None]:
    """At most `count` lengths over the training range, both ends among them."""
    if task.spec.lengths is None:
        return [None]
    there = lengths_between(task, *task.spec.lengths)
    if len(there) <= count:
        return list(there)
    first = there.start if isinstance(there, range) else 0  # halves are rounded as lengths are, not as places
    return sorted({there[round(first + i * (len(there) - 1) / (count - 1)) - first] for i in range(count)})


def _fitting(tensors: Mapping[str, Tensor], name: str, like: Tensor) -> Tensor:
    found = tensors.get(name)
    if found is None or found.shape != like.shape:
        raise BadInput(
            f"the checkpoint does not hold '{name}' in the shape {tuple(like.shape)}: start again without it"
        )
    return found
