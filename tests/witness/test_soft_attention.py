"""PARITY, FIRST and bounded brackets in attention: against brute force, theory's formula and the published figures."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
import torch.nn.functional as F

from theodolite.claims.expressivity.attention_limits import dyck_curve, soft_attention_curve
from theodolite.claims.expressivity.g13_g14_g17_g18_limits import PUBLISHED
from theodolite.errors import BadInput
from theodolite.tasks.dyck import Dyck
from theodolite.witness.dyck_attention import DyckAttention
from theodolite.witness.soft_attention import SoftAttention, predicted_logit

NORMS = (None, 0.0, 1e-5)


def every(n: int) -> torch.Tensor:
    return torch.tensor(list(itertools.product((0, 1), repeat=n)))


def said(language: str, bits: torch.Tensor) -> torch.Tensor:
    """The language, bit by bit in Python."""
    if language == "first":
        return torch.tensor([row[0] == 1 for row in bits.tolist()])
    odd = []
    for row in bits.tolist():
        state = 0
        for bit in row:
            state ^= bit
        odd.append(state == 1)
    return torch.tensor(odd)


@pytest.mark.parametrize("epsilon", NORMS)
@pytest.mark.parametrize("language", ["parity", "first"])
def test_every_input_of_up_to_twelve_bits_is_answered(language, epsilon):
    module = SoftAttention(language, epsilon)
    for n in (1, 2, 3, 6, 11, 12):
        bits = every(n)
        with torch.no_grad():
            assert torch.equal(module(bits) > 0, said(language, bits)), n


@pytest.mark.parametrize("language", ["parity", "first"])
def test_logits_are_those_of_the_formula(language):
    for n, epsilon in itertools.product((1, 2, 7, 10), (None, 0.0)):
        bits = every(n)
        with torch.no_grad():
            logits = SoftAttention(language, epsilon)(bits)
        for answer in (False, True):
            expected = predicted_logit(language, n, answer, epsilon)
            measured = logits[said(language, bits) == answer].abs()
            assert torch.allclose(measured, torch.full_like(measured, expected), rtol=1e-9)


@pytest.mark.parametrize(("language", "epsilon"), list(PUBLISHED))
def test_published_cross_entropies_are_met(language, epsilon):
    """To the published digits; layer norm with ε > 0 depends on the drawn bits, so by 3 % there."""
    found = soft_attention_curve(language, epsilon)
    assert [row["tokens"] for row in found] == [10, 100, 1000]
    assert all(row["accuracy"] == 1 for row in found)
    for row, published in zip(found, PUBLISHED[language, epsilon], strict=True):
        if epsilon is None:  # they crowd at 1 bit: what is missing from it is compared
            assert 1 - row["cross_entropy"] == pytest.approx(1 - published, rel=0.1)
        else:
            assert row["cross_entropy"] == pytest.approx(published, rel=0.03)


def test_the_hat_is_where_the_count_is():
    """Inside: after the first layer of PARITY, exactly the token at place k holds 1/N."""
    module = SoftAttention("parity")
    bits = every(6)
    x = module.embed(bits)
    with torch.no_grad():
        hat = module.first(x, x)[..., 7]
    expected = torch.zeros_like(hat)
    expected[torch.arange(len(bits)), bits.sum(dim=1)] = 1 / 7
    assert torch.allclose(hat, expected, atol=1e-15)


def test_one_changed_bit_moves_the_plain_answer_by_one_over_n():
    """Hahn's bound, on a network that nevertheless answers: the change falls at least as fast as 1/n."""
    module = SoftAttention("first")
    sizes = []
    for n in (64, 256, 1024):
        bits = torch.zeros(2, n, dtype=torch.long)
        bits[1, 0] = 1
        with torch.no_grad():
            low, high = module(bits)
        sizes.append(float(high - low))
    slopes = [math.log(b / a) / math.log(4) for a, b in itertools.pairwise(sizes)]
    assert all(-1.02 < slope < -0.98 for slope in slopes)


@pytest.mark.parametrize("bad", [lambda: SoftAttention("majority"), lambda: SoftAttention("parity", -1.0),
                                 lambda: SoftAttention("parity")(torch.tensor([[0, 2]])),
                                 lambda: soft_attention_curve("parity", lengths=())])  # fmt: skip
@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_refused_in_a_sentence(bad):
    with pytest.raises(BadInput) as raised:
        bad()
    assert "\n" not in str(raised.value)


def prefixes(types: int, depth: int, length: int) -> list[list[int]]:
    """Every prefix of a well-nested string that never opens more than `depth`, grown one bracket at a time."""
    grown: list[tuple[list[int], list[int]]] = [([], [])]
    for _ in range(length):
        following = []
        for row, stack in grown:
            if len(stack) < depth:
                following += [([*row, kind], [*stack, kind]) for kind in range(types)]
            if stack:
                following.append(([*row, types + stack[-1]], stack[:-1]))
        grown = following
    return [row for row, _ in grown]


@pytest.mark.parametrize(("types", "depth", "length"), [(2, 3, 8), (1, 1, 9), (3, 2, 6), (2, 8, 8)])
def test_every_short_string_of_brackets_is_answered(types, depth, length):
    task = Dyck(types=types, depth=depth)
    rows = prefixes(types, depth, length)
    assert len(rows) >= (1 if depth == 1 else 100)
    net = DyckAttention.exact(types, depth, length)
    answers = net(F.one_hot(torch.tensor(rows), 2 * types).double()).argmax(dim=-1)
    assert answers.tolist() == [list(task.solve(row)) for row in rows]


@pytest.mark.parametrize(("types", "depth", "length"), [(2, 4, 300), (4, 12, 200)])
def test_long_strings_of_brackets_are_answered(types, depth, length):
    task = Dyck(types=types, depth=depth)
    batch = task.sample(1, 16, length, torch.Generator().manual_seed(3))
    net = DyckAttention.exact(types, depth, length)
    scores = net(F.one_hot(batch.inputs[0], 2 * types).double()).detach()
    best = scores.topk(2, dim=-1).values
    assert torch.equal(scores.argmax(dim=-1), batch.targets[0])
    assert float((best[..., 0] - best[..., 1]).min()) > 0.4


def test_brackets_fade_with_bounded_logits_only():
    bounded = [row["cross_entropy"] for row in dyck_curve(True, lengths=(11, 101, 801), inputs=16)]
    growing = [row["cross_entropy"] for row in dyck_curve(False, lengths=(11, 101, 801), inputs=16)]
    assert bounded[0] < bounded[1] < bounded[2] < 1
    assert bounded[2] > 0.95
    assert max(growing) - min(growing) < 1e-6
