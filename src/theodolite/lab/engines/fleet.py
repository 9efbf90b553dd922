"""Workers on other machines as one engine: whoever is ready first takes the next group.

A fleet knows neither Ray nor Slurm. A `Site` starts workers and waits for them; a `Link` leads to one of them.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from theodolite.errors import BadInput, StoreError
from theodolite.lab.engines.parcel import Delivery, Hello, News, Parcel, pack, receive
from theodolite.lab.engines.pool import Died, Failed, Message, Paused
from theodolite.lab.group import Group
from theodolite.lab.work import Context
from theodolite.version import __version__

logger = logging.getLogger(__name__)

_PATIENCE = 15.0  # seconds: for workers to save their state, and for a cluster in trouble to recover
_LOOK = 2.0  # seconds between looks at the cluster's health
_FAILED_STARTS = 3  # in a row without one that works: then it is not a matter of luck


class Gone(Exception):
    """A worker that will not answer any more; the message is the reason."""


@dataclass(frozen=True)
class Left:
    """A worker that ended because its time was up, with nothing unsaid."""


class Link(Protocol):
    """The way to one worker. Its first word is `Hello`; `news` never waits, and raises `Gone`."""

    def send(self, parcel: Parcel) -> None: ...

    def news(self) -> Sequence[Hello | News | Left]: ...

    def ask_to_stop(self) -> None: ...

    def end(self) -> None: ...


class Site(Protocol):
    """Where workers are started: `workers` of them at most."""

    workers: int

    def start(self) -> Link: ...

    def wait(self, links: Sequence[Link], timeout: float) -> None: ...

    def trouble(self) -> str | None: ...

    def close(self) -> None: ...


@dataclass
class _Member:
    link: Link
    ready: bool = False
    leaving: bool = False
    group: str | None = None


class Fleet:
    """Parcels in, news out. A worker that dies takes only its own group with it, and another is started."""

    def __init__(self, site: Site) -> None:
        self.workers = site.workers
        self._site = site
        self._crew: list[_Member] = []
        self._waiting: deque[Parcel] = deque()
        self._failed_starts = 0
        self._looked = 0.0
        self._trouble_since: float | None = None

    def submit(self, parcel: Parcel) -> None:
        self._waiting.append(parcel)
        self._assign()

    def poll(self, timeout: float) -> list[News | Died]:
        self._site.wait([member.link for member in self._crew], timeout)
        news = self._heard()
        self._assign()
        self._look()
        return news

    def drop(self, group: str) -> None:
        """Forget a group; the worker that runs it is ended."""
        self._waiting = deque(parcel for parcel in self._waiting if parcel.group.id != group)
        for member in [m for m in self._crew if m.group == group]:
            self._end(member)

    def stop(self) -> list[News | Died]:
        """Ask every worker to save its state; who does not in time is ended."""
        self._waiting.clear()
        news: list[News | Died] = []
        for member in self._crew:
            member.link.ask_to_stop()
        limit = time.monotonic() + _PATIENCE
        while any(m.group is not None for m in self._crew) and time.monotonic() < limit:
            self._site.wait([m.link for m in self._crew], 0.2)
            news += self._heard()
        for member in list(self._crew):
            self._end(member)
        self._site.close()
        return news

    def _heard(self) -> list[News | Died]:
        return [one for member in list(self._crew) for one in self._read(member)]

    def _read(self, member: _Member) -> list[News | Died]:
        found: list[News | Died] = []
        try:
            for one in member.link.news():
                if isinstance(one, Hello):
                    self._greet(member, one)
                elif isinstance(one, Left):
                    if member.group is not None:  # sent to it in the moment it left
                        found.append(Paused(member.group))
                    self._end(member)
                    return found
                else:
                    found.append(one)
                    if not isinstance(one, Delivery) or one.update.done:
                        member.group = None
                    member.leaving |= isinstance(one, Paused)
        except Gone as reason:
            if not member.ready:
                self._failed_starts += 1
                logger.warning("a worker did not start: %s", reason)
            if member.group is not None:
                found.append(Died(member.group, None, str(reason)))
            self._end(member)
            if self._failed_starts >= _FAILED_STARTS and not any(m.ready for m in self._crew):
                raise BadInput(f"no worker could be started: {reason}") from None
        return found

    def _greet(self, member: _Member, hello: Hello) -> None:
        if hello.version != __version__:
            raise Gone(
                f"theodolite is {hello.version} on the node '{hello.host}' and {__version__} here: "
                "install the same version on every node"
            )
        logger.info("a worker on %s is ready, with torch %s", hello.host, hello.torch)
        member.ready = True
        self._failed_starts = 0

    def _assign(self) -> None:
        for member in self._crew:
            if self._waiting and member.ready and not member.leaving and member.group is None:
                parcel = self._waiting.popleft()
                member.group = parcel.group.id
                member.link.send(parcel)
        # A slot whose worker failed to start is not filled again at once: the others take its groups.
        room = max(1, self.workers - self._failed_starts) - len(self._crew)
        starting = sum(1 for member in self._crew if not member.ready)
        for _ in range(min(room, len(self._waiting) - starting)):
            self._crew.append(_Member(self._site.start()))

    def _look(self) -> None:
        """A cluster that cannot run anything, for long, ends the command: waiting would be for ever."""
        now = time.monotonic()
        if now - self._looked < _LOOK or not (self._waiting or any(m.group for m in self._crew)):
            return
        self._looked = now
        trouble = self._site.trouble()
        if trouble is None:
            self._trouble_since = None
        elif self._trouble_since is None:
            self._trouble_since = now
        elif now - self._trouble_since > _PATIENCE:
            raise BadInput(trouble)

    def _end(self, member: _Member) -> None:
        member.link.end()
        self._crew.remove(member)


class Parcels(Protocol):
    """A fleet, in this process or behind a pipe."""

    workers: int

    def submit(self, parcel: Parcel) -> None: ...

    def poll(self, timeout: float) -> list[News | Died]: ...

    def drop(self, group: str) -> None: ...

    def stop(self) -> list[News | Died]: ...


class Remote:
    """An engine whose workers are a fleet: groups leave as parcels, and files come back with the updates."""

    def __init__(self, fleet: Parcels) -> None:
        self.workers = fleet.workers
        self._fleet = fleet
        self._contexts: dict[str, Context] = {}

    @property
    def free(self) -> int:
        return max(0, self.workers - len(self._contexts))

    def submit(self, group: Group, context: Context) -> None:
        self._fleet.submit(pack(group, context))
        self._contexts[group.id] = context

    def poll(self, timeout: float) -> list[Message]:
        return self._received(self._fleet.poll(timeout))

    def drop(self, group: str) -> None:
        self._contexts.pop(group, None)
        self._fleet.drop(group)

    def stop(self) -> list[Message]:
        messages: list[Message] = []
        for one in self._fleet.stop():
            try:
                messages += self._received([one])
            except StoreError as error:  # a state that cannot be kept costs time only, and others still can
                logger.warning("%s", error)
        return messages

    def _received(self, news: Sequence[News | Died]) -> list[Message]:
        messages: list[Message] = []
        for one in news:
            group = one.update.group if isinstance(one, Delivery) else one.group
            if group not in self._contexts:
                continue  # dropped while its news was on the way
            message = receive(one, self._contexts[group]) if isinstance(one, Delivery) else one
            if isinstance(message, Failed | Died | Paused) or message.done:
                del self._contexts[group]
            messages.append(message)
        return messages
