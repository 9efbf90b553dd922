"""Runs kernels in Triton's interpreter, in a process of their own: whether they are interpreted is settled once for a
process, when they are first imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def interpreted(module: str) -> Any:
    """What `module`, run as a script, prints as JSON."""
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, "-m", module], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def mend_interpreter() -> None:
    """numpy from 2.4 on refuses the interpreter's way to read a number that bounds a loop."""
    from triton.runtime import interpreter

    patch = interpreter._patch_lang_tensor  # pyright: ignore[reportPrivateUsage]

    def mended(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    interpreter._patch_lang_tensor = mended  # pyright: ignore[reportPrivateUsage]
