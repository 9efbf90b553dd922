"""What can go wrong, and the exit code each kind of it ends a command with.

Every message is one sentence that names the value at fault and says what to do instead.
"""


class TheodoliteError(Exception):
    """Anything the user is told in one sentence instead of a traceback."""

    exit_code = 2


class BadInput(TheodoliteError):
    """A value the user passed cannot be used."""


class UnknownName(BadInput):
    """A name that is not registered; the message lists near names."""


class OutsideDomain(BadInput):
    """A theorem was asked about a shape it does not speak of."""


class NotPolynomial(BadInput):
    """An exact measurement met an operation that is not polynomial."""


class NotEnoughMemory(BadInput):
    """A computation would need more memory than there is; the message says how much."""


class StoreError(BadInput):
    """The store, or a checkpoint in it, cannot be read or written."""


class DiskFull(StoreError):
    """Nothing more can be written; what was written before is intact."""


class ClaimLost(StoreError):
    """Another command took over a group that this one was running."""


class NotApplicable(BadInput):
    """A built-in net and a task that do not fit; the message is the reason."""


class CellsFailed(BadInput):
    """Some cells could not be run; the others are finished and kept."""


class Finding(TheodoliteError):
    """The command ran and found what the user asked to fail on."""

    exit_code = 1


class CertificateRefused(Finding):
    """A certificate does not prove what it states."""
