"""Who holds a group, and whether that process still lives: a number alone does not say, because it is used again."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

SILENCE = 60.0  # seconds without a heartbeat after which a process that cannot be seen from here counts as dead

_open_here: set[str] = (
    set()
)  # tokens of this process's stores: one that was dropped unclosed is dead, the process is not


@dataclass(frozen=True)
class Owner:
    """One open store in one process."""

    token: str
    host: str
    place: str  # host, boot and process namespace: processes can be looked up by number only inside the same one
    pid: int
    start: str | None  # when the process began, in the system's own unit; None where the system does not say

    @classmethod
    def here(cls) -> Owner:
        host, pid = socket.gethostname(), os.getpid()
        owner = cls(secrets.token_hex(8), host, f"{host} {_boot()} {_namespace()}", pid, _state_and_start(pid)[1])
        _open_here.add(owner.token)
        return owner

    def leave(self) -> None:
        _open_here.discard(self.token)

    def dead(self, silence: float) -> bool:
        """`silence`: seconds since the last heartbeat; it decides only where the process cannot be looked up."""
        if os.name != "posix" or self.place != f"{socket.gethostname()} {_boot()} {_namespace()}":
            return silence > SILENCE
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass  # it lives, and belongs to someone else
        state, start = _state_and_start(self.pid)
        if state in ("Z", "X") or (start and self.start and start != self.start):
            return True
        return self.pid == os.getpid() and self.token not in _open_here


def _state_and_start(pid: int) -> tuple[str | None, str | None]:
    """Fields 3 and 22 of /proc/<pid>/stat; field 2, the name, may itself hold spaces and brackets."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return fields[0], fields[19]
    except (OSError, IndexError):
        return None, None


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "-"


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return "-"
