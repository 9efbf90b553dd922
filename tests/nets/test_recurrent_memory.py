"""Nets with a stack or a tape against plain loops over whole memories, and strings they handle by hand-set weights."""

# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportIndexIssue=false

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from tests.each import each
from theodolite.errors import BadInput
from theodolite.nets.load import load
from theodolite.nets.parts.recurrent import Recurrent
from theodolite.nets.stack_rnn import Slide, slide, stack_rnn
from theodolite.nets.tape_rnn import TapeRNN, input_lengths

from .test_families import doubled, inputs, same

SYMBOLS = 5
SURE = 300.0  # a logit: e^−300 is 0 in float32


def stack_by_hand(net: Recurrent, x: Tensor, cells: int) -> Tensor:
    """The equations of Joulin & Mikolov, cell by cell, on a stack that is kept whole."""
    for layer in net.layers:
        control, shown = layer.control, []
        hidden = torch.zeros(len(x), layer.width, dtype=x.dtype)
        stack = torch.zeros(len(x), cells, layer.cell, dtype=x.dtype)
        for token in x.unbind(1):
            hidden = control.activation(control.into(token) + control.across(torch.cat((hidden, stack[:, 0]), -1)))
            heads = control.heads(hidden)
            push, stay, pop = torch.softmax(heads[:, layer.cell :], -1).unsqueeze(1).unbind(-1)
            held = [heads[:, : layer.cell], *stack.unbind(1), torch.zeros_like(stack[:, 0])]
            rows = [push * held[i] + stay * held[i + 1] + pop * held[i + 2] for i in range(cells)]
            stack = torch.stack(rows, dim=1)
            shown.append(hidden)
        x = torch.stack(shown, dim=1)
    return net.read(x)


@each(("tokens", "stack"), [(1, None), (2, None), (7, None), (12, None), (12, 3), (9, 1), (5, 40)])
@each("depth", [1, 2])
def test_a_stack_of_which_only_readable_cells_are_kept_is_the_whole_stack(tokens, stack, depth):
    net = doubled(stack_rnn(features=3, outputs=2, width=5, cell=3, depth=depth, stack=stack, activation="tanh"))
    x = inputs(4, tokens, 3)
    same(net(x), stack_by_hand(net, x, tokens if stack is None else stack))


def test_the_gradient_of_a_slide_is_the_one_autograd_finds():
    cells, weights = inputs(3, 6, 2).requires_grad_(), inputs(3, 3).requires_grad_()
    assert torch.autograd.gradcheck(Slide.apply, (cells, weights), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(Slide.apply, (cells, weights))
    both = lambda moved: (moved, moved[:, 0])
    value = lambda moved, top: (moved * inputs(3, 4, 2)).sum() + (top * inputs(3, 2)).sum()
    given = (cells, weights)
    truth = torch.autograd.grad(value(*both(slide(*given))), given)
    for one, other in zip(torch.autograd.grad(value(*Slide.apply(*given)), given), truth, strict=True):
        same(one, other)
    # one of the two shared by all members, the batch in another place
    moved, top = torch.func.vmap(Slide.apply, in_dims=(None, 1))(cells, inputs(3, 4, 3))
    for member in range(4):
        expected = slide(cells, inputs(3, 4, 3)[:, member])
        same(moved[member], expected)
        same(top[member], expected[:, 0])


def tape_by_hand(net: TapeRNN, x: Tensor) -> Tensor:
    """The equations of Delétang et al.: write into cell 0, then the mean of the tape rolled by each action's shift."""
    length = max((t + 1 for t in range(x.shape[1]) if not torch.equal(x[:, t], x[:, -1])), default=1)
    size, jump = net.tape or 2 * x.shape[1], net.jump or length
    for layer in net.layers:
        control, shown = layer.control, []
        hidden = torch.zeros(len(x), layer.width, dtype=x.dtype)
        tape = torch.zeros(len(x), size, layer.cell, dtype=x.dtype)
        for token in x.unbind(1):
            hidden = control.activation(control.into(token) + control.across(torch.cat((hidden, tape[:, 0]), -1)))
            heads = control.heads(hidden)
            value = heads[:, 5:] if layer.writer is None else layer.writer(hidden)
            written = torch.cat((value[:, None], tape[:, 1:]), dim=1)
            moves = [written.roll(shift, dims=1) for shift in (0, -1, 1, -jump, jump)]
            weights = torch.softmax(heads[:, :5], -1)
            tape = sum(weights[:, a, None, None] * move for a, move in enumerate(moves))
            shown.append(hidden)
        x = torch.stack(shown, dim=1)
    return net.read(x)


@each("tokens", [1, 2, 5, 12])
@each("shape", [{}, {"depth": 2}, {"tape": 4}, {"tape": 1}, {"tape": 7, "jump": 20}, {"jump": 3, "write_layers": 2}])
def test_a_tape_kept_as_its_fourier_coefficients_is_the_tape(tokens, shape):
    net = doubled(TapeRNN(features=3, outputs=2, width=5, cell=3, activation="tanh", **shape))
    x = inputs(4, tokens, 3)
    same(net(x), tape_by_hand(net, x))
    x[:, -max(1, tokens // 2) :] = inputs(3)  # a run of equal tokens at the end: shorter jumps
    same(net(x), tape_by_hand(net, x))


def test_the_length_of_an_input_is_what_stands_before_the_markers():
    rows = [[1, 2, 1, 0, 0, 0], [1, 0, 1, 2, 0, 9], [1, 1, 9, 9, 9, 9], [2, 9, 9, 9, 9, 9], [0, 1, 2, 1, 2, 1]]
    counts = torch.tensor([6, 5, 2, 1, 6])
    x = nn.functional.one_hot(torch.tensor(rows), 10).double()
    length, tokens = input_lengths(x, torch.arange(6) < counts[:, None])
    assert tokens.tolist() == counts.tolist()
    assert length.tolist() == [3, 4, 1, 1, 5]  # a row of one symbol only has 1
    assert input_lengths(x[:1], None)[0].tolist() == [3]
    assert [t.tolist() for t in input_lengths(x[:1], torch.zeros(1, 6, dtype=torch.bool))] == [[1], [1]]


def strings(length: int, markers: int) -> tuple[Tensor, Tensor]:
    """Random strings followed by markers, one-hot, and the strings."""
    text = torch.randint(SYMBOLS, (6, length), generator=torch.Generator().manual_seed(length))
    ids = torch.cat((text, torch.full((6, markers), SYMBOLS)), dim=1)
    return nn.functional.one_hot(ids, SYMBOLS + 1).float(), text


def cleared(net: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
    return net


@pytest.mark.parametrize("length", [1, 2, 40, 200])
@torch.no_grad()
def test_hand_set_weights_make_a_stack_rnn_reverse_a_string_of_any_length(length):
    """Push what is read; at a marker show the top and pop it."""
    net: Recurrent = cleared(stack_rnn(SYMBOLS + 1, SYMBOLS, width=2 * SYMBOLS + 1, cell=SYMBOLS))
    control, each = net.layers[0].control, torch.eye(SYMBOLS)
    marker = 2 * SYMBOLS  # a unit; the symbol read stands in the first units, the top if there is a marker in the next
    control.into.weight[:SYMBOLS, :SYMBOLS] = each
    control.into.weight[SYMBOLS : 2 * SYMBOLS, SYMBOLS] = 1
    control.into.bias[SYMBOLS : 2 * SYMBOLS] = -1
    control.across.weight[SYMBOLS : 2 * SYMBOLS, net.layers[0].width :] = each
    control.into.weight[marker, SYMBOLS] = 1
    control.heads.weight[:SYMBOLS, :SYMBOLS] = each
    push, _, pop = range(SYMBOLS, SYMBOLS + 3)
    control.heads.bias[push] = SURE
    control.heads.weight[push, marker] = -2 * SURE
    control.heads.weight[pop, marker] = SURE
    net.read.weight[:, SYMBOLS : 2 * SYMBOLS] = each
    x, text = strings(length, length)
    answer = net(x)[:, length:]
    assert torch.equal(answer, nn.functional.one_hot(text.flip(1), SYMBOLS).float()), "and exactly, not nearly"
    weaker = stack_rnn(SYMBOLS + 1, SYMBOLS, width=2 * SYMBOLS + 1, cell=SYMBOLS, stack=3)
    weaker.load_state_dict(net.state_dict())
    kept = min(length, 3)
    assert torch.equal(weaker(x)[:, length : length + kept], answer[:, :kept])
    assert (weaker(x)[:, length + kept :] == 0).all(), "a stack of 3 forgets the rest"


@pytest.mark.parametrize("length", [1, 2, 40, 200])
@torch.no_grad()
def test_hand_set_weights_make_a_tape_rnn_write_a_string_twice_at_any_length(length):
    """Write along the tape; at a marker over an empty cell jump back by the input's length, at others show the cell.

    The string appears twice, each time after one marker that the jump takes. The net knows the length by the jump only.
    """
    net: TapeRNN = cleared(TapeRNN(SYMBOLS + 1, SYMBOLS, width=SYMBOLS + 1, cell=SYMBOLS))
    control, each = net.layers[0].control, torch.eye(SYMBOLS)
    empty = SYMBOLS  # a unit: a marker over an empty cell; the others are the symbol, read from the input or the tape
    control.into.weight[:SYMBOLS, :SYMBOLS] = each
    control.across.weight[:SYMBOLS, net.layers[0].width :] = each
    control.into.weight[empty, SYMBOLS] = 1
    control.across.weight[empty, net.layers[0].width :] = -1
    _, forward, _, _, jump_back = range(5)
    control.heads.bias[forward] = SURE
    control.heads.weight[jump_back, empty] = 2 * SURE
    control.heads.weight[5:, :SYMBOLS] = each
    net.read.weight[:, :SYMBOLS] = each
    x, text = strings(length, 2 * length + 2)
    answer = net(x)[:, length:]
    shown = nn.functional.one_hot(text, SYMBOLS).float()
    pause = torch.zeros(len(text), 1, SYMBOLS)
    torch.testing.assert_close(answer, torch.cat((pause, shown, pause, shown), dim=1), rtol=0, atol=1e-4)
    # rows of several lengths in one batch, each with its own jump
    shorter, short_text = strings(max(1, length // 2), 2 * max(1, length // 2) + 2)
    padded = torch.zeros_like(x)
    padded[:, : shorter.shape[1]] = shorter
    counts = torch.tensor([x.shape[1], shorter.shape[1]]).repeat_interleave(len(x))
    both = net(torch.cat((x, padded)), torch.arange(x.shape[1]) < counts[:, None])
    torch.testing.assert_close(both[: len(x), length:], answer, rtol=0, atol=1e-4)
    begin = short_text.shape[1] + 1
    found = both[len(x) :, begin : begin + short_text.shape[1]]
    torch.testing.assert_close(found, nn.functional.one_hot(short_text, SYMBOLS).float(), rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", ["stack-rnn", "tape-rnn"])
def test_weights_start_as_in_the_paper(name):
    """By the number of inputs of each map, cut at two deviations; biases at 0."""
    control = load(name, width=64, features=50, cell=14, activation="tanh").module.layers[0].control
    maps = {64: (control.across.weight[:, :64], control.heads.weight), 50 + 14: (control.into.weight,)}
    maps[50 + 14] += (control.across.weight[:, 64:],)
    for fan_in, weights in maps.items():
        for weight in weights:
            assert weight.abs().max() <= 2 * fan_in**-0.5
            assert weight.std().item() == pytest.approx(0.88 * fan_in**-0.5, rel=0.1)
    assert (control.into.bias == 0).all()
    assert (control.heads.bias == 0).all()


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("stack-rnn", {"stack": 0}, "stack of 'stack-rnn' must be a whole number of at least 1, not 0"),
        ("stack-rnn", {"cell": 0}, "cell of .* must be"),
        ("stack-rnn", {"activation": "gelu"}, "activation must be relu or tanh, not 'gelu'"),
        ("tape-rnn", {"tape": -1}, "tape of .* must be"),
        ("tape-rnn", {"jump": 0}, "jump of .* must be"),
        ("tape-rnn", {"write_layers": -1}, "write_layers of .* must be a whole number of at least 0"),
    ],
)
def test_sizes_that_make_no_memory_are_refused(name, shape, message):
    with pytest.raises(BadInput, match=message):
        load(name, **shape)
