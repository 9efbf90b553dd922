"""What to do about an error that a user's net raised, where its words tell."""

from __future__ import annotations

_OF_A_GPU = ("cuda", "triton", "gpu", "'cpu' backend", "flashattention")


def advice(error: BaseException) -> str | None:
    """One clause, for a kernel that is for GPUs alone or a package that is not there; None where words do not tell."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"install '{error.name}', or leave out what needs it"
    words = str(error).lower()
    if any(sign in words for sign in _OF_A_GPU):
        return "a net is tried on the CPU first, so give it a way without the kernel"
    return None
