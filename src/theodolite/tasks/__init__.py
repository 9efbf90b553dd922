"""What a net is asked to express or learn: a generator and an independent slow solver, one file a task.

A file registers what it defines, and importing this folder registers all.
"""

import importlib
import pkgutil

from theodolite.tasks.contract import Batch, Task, TaskSpec, check_length, list_tasks, make_task, tasks

__all__ = ["Batch", "Task", "TaskSpec", "check_length", "list_tasks", "make_task", "tasks"]

for _file in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_file.name)
