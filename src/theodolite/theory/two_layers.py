"""Where the cap of the heads is proven to be the rank of two attention layers, with at least d tokens a side.

The theorem and its proof: docs/exact-rank.md, "Two layers of many heads". For a width of heads that divides d it leaves
open numbers of heads of one entry near d times the cube root of 3, fewer than d/63 + 4 of them, and nothing else; for
other widths some numbers of heads. What it leaves open up to d = `CERTIFIED` has a certificate for each shape,
benchmarks/certificates/two-layers.jsonl; heads of one entry up to d = `COMPUTED` have two ranks modulo a prime that
prove it, computed in the tests.
"""

from __future__ import annotations

import math
from typing import Literal

from theodolite.errors import OutsideDomain
from theodolite.theory.domain import whole
from theodolite.theory.heads import heads_that_see_all

CERTIFIED = 10  # the widest d of which every shape has a proof
COMPUTED = 24  # the same for heads of one entry
FORMS_CHECKED = 24  # where d_a does not divide d, the number of forms K is known for all H up to this d, by computation
_SMALLEST = 7  # the third part needs room for 2d different entries of S in two rows


def law_proven(width: int, heads: int, attention_width: int) -> Literal["theorem", "certificate", "computation"] | None:
    """What proves that the rank at depth 2 is the cap of the heads; None where that is a conjecture."""
    inner = min(whole("attention_width", attention_width), whole("width", width))
    if whole("heads", heads) * inner < width:
        raise OutsideDomain(
            f"heads × attention_width = {heads * inner} is outside the domain: the law needs at least the width {width}"
        )
    # Heads contain narrower ones, whose cap is the same if these already see all.
    contained = [n for n in range(1, inner) if heads >= heads_that_see_all(width, n)]
    if any(_theorem(width, heads, n) for n in (inner, *contained)):
        return "theorem"
    if width <= CERTIFIED:
        return "certificate"
    return "computation" if inner == 1 and width <= COMPUTED else None


def _theorem(width: int, heads: int, inner: int) -> bool:
    if heads >= (-(-width // inner)) ** 2:  # they contain one head of full width
        return True
    heads = min(heads, heads_that_see_all(width, inner))  # more have the same cap
    parts = third_part_proven(width, heads, inner) and second_part_proven(width, heads, inner)
    return width >= _SMALLEST and parts


def third_part_proven(width: int, heads: int, inner: int) -> bool:
    """The part of degree 3 in S_B: F has two rows of different entries, or heads of one entry make exactly one.

    Between one row and two, blocks of columns with 13 forms each 9, 3 each 2 or 2 each 1 make its map injective, with
    10 each 7, 4 each 3 or 1 each 1 and two more columns onto.
    """
    if inner > 1 or heads == width or heads >= 2 * width:
        return True
    sevens, rest = divmod(width - 2, 7)
    nines, over = divmod(width, 9)
    return heads <= 10 * sevens + 4 * rest // 3 or heads >= 13 * nines + -(-3 * over // 2)


def second_part_proven(width: int, heads: int, inner: int) -> bool:
    """The part of degree 2: `rows` of F hold all forms, of which `full` are independent of each other.

    Each of the rows needs a symmetric full × full matrix of its own: p vectors v of the second layer make
    p·full − binom(p, 2) of them. Skew matrices may serve too.
    """
    if 2 * inner >= width:
        return True
    if inner == 1 and width < heads < 2 * width:  # by induction from the certified widths
        return width > CERTIFIED
    within = width // inner * inner  # coordinates that d_a divides: while they hold H·d_a² forms, K is that many
    if width % inner and width > FORMS_CHECKED and 2 * heads * inner**2 > within * (within + 1):
        return False
    blocks, beside = -(-width // inner), width // inner
    rows = inner * -(-heads // beside)
    if rows > width:
        return False
    for layers in range(1, max(1, (beside - 1) // 2) + 1):
        full = layers * inner
        if layers * blocks > heads or (inner == 1 and 2 * layers + 2 > blocks):
            break
        vectors = min(full, heads // layers)
        if rows <= vectors * full - math.comb(vectors, 2):
            return True
    return _skew_rows_suffice(width, heads, inner, rows)


def _skew_rows_suffice(width: int, heads: int, inner: int, rows: int) -> bool:
    """d_a ≥ 2 rows over blocks of d_a columns, and as many scaled copies of them: d_a² matrices.

    If columns are left over, their head needs d_a more rows with symmetric matrices, which d_a = 2 does not have.
    """
    skew = max(0, rows - inner * (inner + 1) // 2)
    vectors = inner + min(inner, 2 * skew)
    enough = inner > 2 or (inner == 2 and width % inner == 0)
    return enough and rows <= inner**2 and rows + inner <= width and vectors <= heads
