"""What a net is asked to express or learn: a generator and an independent slow solver, one file a task."""

from theodolite.tasks import (
    boolean,
    copying,
    dyck,
    linear_periodic,
    majority,
    parity,
    parity_check,
    recall,
    reversal,
    sawtooth,
)
from theodolite.tasks.contract import Batch, Task, TaskSpec, check_length, list_tasks, make_task, tasks

__all__ = [
    "Batch",
    "Task",
    "TaskSpec",
    "boolean",
    "check_length",
    "copying",
    "dyck",
    "linear_periodic",
    "list_tasks",
    "majority",
    "make_task",
    "parity",
    "parity_check",
    "recall",
    "reversal",
    "sawtooth",
    "tasks",
]
