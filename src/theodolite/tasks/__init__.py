"""What a net is asked to express or learn: a generator and an independent slow solver, one file a task."""

from theodolite.tasks import copying, parity
from theodolite.tasks.contract import Batch, Task, TaskSpec, list_tasks, tasks

__all__ = ["Batch", "Task", "TaskSpec", "copying", "list_tasks", "parity", "tasks"]
