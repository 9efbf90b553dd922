"""How much work a fit may do: counted in steps and products, never in seconds, so that a fit can be repeated."""

from __future__ import annotations

from dataclasses import dataclass

from theodolite.errors import BadInput

LEAST_POLISH = 5
ALONE = 5  # times as many steps of Adam where least squares does not follow


@dataclass(frozen=True)
class Effort:
    """`restarts` networks for each of `folds` splits of the rows take `descent` steps of Adam; the best of each split
    then takes up to `polish` steps of least squares, as far as `products` (multiplications, over all steps and splits)
    reach. Where there is a guide, one of the restarts gives way to a guided start, for which `guided` starts of every
    module are tried (0: no guided start). `width` units in the hidden layer of a graph's constituents; a dense network
    has two, with as many parameters as the graph's network or of `dense_width` units (None: only the first): the
    better of both.
    """

    folds: int
    restarts: int
    descent: int
    polish: int
    products: float
    width: int
    dense_width: int | None
    guided: int = 0

    def polish_steps(self, rows: int, parameters: int) -> int:
        """A step of least squares costs rows × parameters × the smaller of both, for every split; 0 where only a few
        could be paid for, and Adam goes on instead."""
        step = rows * parameters * min(rows, parameters) * self.folds
        paid = min(self.polish, int(self.products / step))
        return paid if paid >= LEAST_POLISH else 0

    def descent_steps(self, polish: int) -> int:
        return self.descent if polish else self.descent * ALONE


EFFORTS = {
    "quick": Effort(3, 3, 50, 30, 1e10, 8, None),
    "standard": Effort(4, 3, 400, 80, 1.5e11, 8, 24, 4),
    "thorough": Effort(5, 4, 1500, 200, 2e12, 12, 48, 6),
}
# many short starts: which of them is caught in a poor minimum shows early
TRIAL = Effort(folds=4, restarts=4, descent=100, polish=20, products=2e10, width=8, dense_width=None)
FEW_ROWS = 250


def effort_named(name: str | Effort, rows: int) -> Effort:
    """`auto` is quick for few rows."""
    if isinstance(name, Effort):
        return name
    if name == "auto":
        return EFFORTS["quick" if rows < FEW_ROWS else "standard"]
    if name not in EFFORTS:
        raise BadInput(f"effort must be auto, {', '.join(EFFORTS)} or an Effort, not {name!r}")
    return EFFORTS[name]
