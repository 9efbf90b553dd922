"""`new`: a file to start a network or a task of one's own from, with a test of it."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from string import Template

from theodolite.errors import BadInput
from theodolite.files import write_text

KINDS = ("net", "task")
_TEMPLATES = Path(__file__).parent / "templates"


def new(kind: str, name: str, out: str | Path = ".") -> tuple[Path, Path]:
    """Write `NAME.py` and `test_NAME.py`, which run as they are.

    Parameters:
        kind: net or task
        name: of the class, such as MyNet; the file is its name in small letters, my_net.py
        out: the folder they are written into; it must be there, and have no files of these names

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in new("net", "MyNet", folder)]
        ['my_net.py', 'test_my_net.py']
    """
    if kind not in KINDS:
        raise BadInput(f"'{kind}' cannot be made anew: use net or task")
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise BadInput(f"'{name}' is no name for a class: use letters, digits and underscores, such as MyNet")
    folder = Path(out)
    if not folder.is_dir():
        raise BadInput(f"there is no folder '{folder}': make it first, or choose another --out")
    stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    found = (folder / f"{stem}.py", folder / f"test_{stem}.py")
    there = next((path for path in found if path.exists()), None)
    if there is not None:
        raise BadInput(f"'{there}' is there already: choose another name, or another --out")
    words = {"Name": name if name != stem else name.title().replace("_", ""), "stem": stem}
    for path, template in zip(found, (f"{kind}.txt", f"test_{kind}.txt"), strict=True):
        write_text(path, Template((_TEMPLATES / template).read_text(encoding="utf-8")).substitute(words))
    return found
