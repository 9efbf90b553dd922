"""What of a model stays in another shape of its family, and what had to give way, in sentences."""

from __future__ import annotations

from theodolite.advice.hardware import Hardware
from theodolite.advice.shape import ModelShape


def stays(old: ModelShape, new: ModelShape, name: str) -> str:
    """What the new shape has from the model of this name."""
    kept = []
    if new.head_width == old.head_width:
        kept.append(f"heads of {old.head_width}")
    group = _group(old)
    if _group(new) == group:
        kept.append(f"{group:g} heads to a key-value head" if group > 1 else "a key-value head for each head")
    ratio = old.mlp_width / old.width
    kind = f"{old.experts} experts of {ratio:.3g} times the width, {old.active_experts} for a token"
    kept.append(kind if old.experts > 1 else f"an MLP {ratio:.3g} times the width")
    if old.vocab is not None and new.vocab == old.vocab:
        kept.append(f"{old.vocab:,} symbols")
    kept.append("one table for input and output" if old.tied else "two tables for input and output")
    return f"Like {name}: {', '.join(kept[:-1])} and {kept[-1]} stay; depth, width and heads are chosen."


def gave_way(old: ModelShape, new: ModelShape, hardware: Hardware) -> tuple[str, ...]:
    """Heads that are narrower, or share keys with more or fewer; where hardware asks for that, it has been said."""
    if hardware.asks:
        return ()
    notes = []
    if new.head_width != old.head_width:
        notes.append(
            f"Heads are {new.head_width} wide and not {old.head_width}: whole groups of those leave no width that the "
            "fit asks for here."
        )
    before, after = _group(old), _group(new)
    if before != after and not old.key_value_heads == new.key_value_heads == 1:
        notes.append(
            f"The advised shape has {after:g} heads to a key-value head and not {before:g}: its {new.heads} heads do "
            "not come in groups of that size."
        )
    return tuple(notes)


def _group(shape: ModelShape) -> float:
    return shape.heads / max(1, shape.key_value_heads)
