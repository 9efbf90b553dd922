"""Linear recurrences in time, S ← α (S − β k kᵀS) + β k vᵀ and diagonal ones, parallel inside chunks of tokens.

Inside a chunk everything is a product of matrices; from chunk to chunk a state is carried. A decay enters only as
the factor from an earlier token to a later one, at most 1, so that nothing overflows however strong it is.
Where kernels are usable, they go token by token instead, the state in registers.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.kernels import diagonal, launch
from theodolite.kernels import scan as fused

CHUNK = 32  # steps of a chunk: products inside it grow with it, the number of steps from chunk to chunk shrinks


def delta_rule(
    query: Float[Tensor, "*batch token key"],
    key: Float[Tensor, "*batch step key"],
    value: Float[Tensor, "*batch step value"],
    rate: Float[Tensor, "*batch step"],
    log_decay: Float[Tensor, "*batch token"] | None = None,
    chunk: int = CHUNK,
) -> Float[Tensor, "*batch token value"]:
    """qᵀS after every token, where S ← α (S − β k kᵀS) + β k vᵀ from S = 0; β is `rate`, log α is `log_decay`.

    There may be several steps per token: S then decays before the first of them and is read after the last. In a
    chunk (Yang et al. 2024, "Parallelizing linear transformers with the delta rule"), S is its start S₀ decayed plus
    Σ_j (decay from j) k_j u_jᵀ, and the u solve a triangular system: u_j = β_j (v_j − α_j k_jᵀ S_{j−1}).
    """
    given = (query, key, value, rate) if log_decay is None else (query, key, value, rate, log_decay)
    if launch.usable(*given) and fused.takes(query, key, value):
        return fused.recur(query, key, value, rate, log_decay)
    tokens = query.shape[-2]
    steps = key.shape[-2] // tokens
    size = min(max(chunk // steps, 1), tokens)
    missing = -tokens % size
    query = _chunks(query, size, missing)
    key, value = (_chunks(each, size * steps, missing * steps) for each in (key, value))
    rate = _chunks(rate.unsqueeze(-1), size * steps, missing * steps)
    overlap, seen = key @ key.transpose(-1, -2), query @ key.transpose(-1, -2)
    if log_decay is None:
        kept = None
        seen = seen.unflatten(-1, (size, steps)).masked_fill(_later(size, seen).unsqueeze(-1), 0).flatten(-2)
        entering = reading = leaving = None
    else:
        since = _chunks(log_decay.unsqueeze(-1), size, missing).squeeze(-1).cumsum(dim=-1)
        kept = _decays(since)
        seen = seen * _spread(kept, steps)
        overlap = overlap * _spread(_spread(kept, steps).transpose(-1, -2), steps).transpose(-1, -2)
        reading = since.exp().unsqueeze(-1)
        entering = _spread(since, steps).exp().unsqueeze(-1)
        leaving = _spread(kept[..., -1, :], steps).unsqueeze(-1)
    system = rate * overlap  # of which only the part below the diagonal is read
    right = torch.cat((value, key if entering is None else entering * key), dim=-1)
    least = torch.promote_types(system.dtype, torch.float32)  # nothing is solved in fewer digits
    solved = torch.linalg.solve_triangular(system.to(least), (rate * right).to(least), upper=False, unitriangular=True)
    own, inherited = solved.split((value.shape[-1], key.shape[-1]), dim=-1)
    if key.shape[-3] == 1:
        return (seen @ own).flatten(-3, -2)[..., :tokens, :]
    handed = (key if leaving is None else leaving * key).transpose(-1, -2)
    unchanged = torch.eye(key.shape[-1], dtype=key.dtype, device=key.device)
    if reading is not None:
        unchanged = unchanged * reading[..., -1:, :]
    states = _carried(unchanged - handed @ inherited, handed @ own)
    found = seen @ (own - inherited @ states) + (query if reading is None else reading * query) @ states
    return found.flatten(-3, -2)[..., :tokens, :]


def decaying_sum(
    query: Float[Tensor, "*batch token key"],
    key: Float[Tensor, "*batch token key"],
    value: Float[Tensor, "*batch token value"],
    log_decay: Float[Tensor, "*batch token"],
    chunk: int = CHUNK,
) -> Float[Tensor, "*batch token value"]:
    """qᵀS after every token, where S ← α S + k vᵀ from S = 0; log α is `log_decay` (Dao and Gu 2024, Section 6)."""
    if launch.usable(query, key, value, log_decay) and fused.takes(query, key, value):
        return fused.recur(query, key, value, None, log_decay)
    tokens = query.shape[-2]
    size = min(chunk, tokens)
    missing = -tokens % size
    query, key, value = (_chunks(each, size, missing) for each in (query, key, value))
    since = _chunks(log_decay.unsqueeze(-1), size, missing).squeeze(-1).cumsum(dim=-1)
    kept = _decays(since)
    found = (query @ key.transpose(-1, -2) * kept) @ value
    if value.shape[-3] > 1:
        handed = (kept[..., -1, :].unsqueeze(-1) * key).transpose(-1, -2) @ value
        states = _carried(since[..., -1:].exp().unsqueeze(-1), handed)
        found = found + (since.exp().unsqueeze(-1) * query) @ states
    return found.flatten(-3, -2)[..., :tokens, :]


def diagonal_system(
    x: Float[Tensor, "batch token channel"],
    log_size: Float[Tensor, "channel state"],
    turn: Float[Tensor, "channel state"],
    real: Float[Tensor, "channel state"],
    imaginary: Float[Tensor, "channel state"],
    chunk: int = CHUNK,
) -> Float[Tensor, "batch token channel"]:
    """Re Σ_n c_n h_n after every token, where h_n ← a_n h_n + x from h = 0, channel by channel.

    a = exp(`log_size` + i·`turn`), c = `real` + i·`imaginary`; complex numbers are pairs of real ones.
    """
    if launch.usable(x, log_size, turn, real, imaginary):
        modes = log_size.exp()
        return diagonal.respond(x, modes * turn.cos(), modes * turn.sin(), real, imaginary)
    tokens = x.shape[1]
    size = min(chunk, tokens)
    missing = -tokens % size
    lag = torch.arange(size + 1, dtype=x.dtype, device=x.device)
    length, angle = torch.exp(log_size.unsqueeze(-1) * lag), turn.unsqueeze(-1) * lag
    cosine, sine = length * angle.cos(), length * angle.sin()
    c, s = real.unsqueeze(-1), imaginary.unsqueeze(-1)
    read = torch.cat((c * cosine - s * sine, -c * sine - s * cosine), dim=1)  # of Re h and Im h, after each lag
    response = (c * cosine - s * sine)[..., :size].sum(dim=1)
    x = nn.functional.pad(x, (0, 0, 0, missing)).permute(2, 1, 0).unflatten(1, (-1, size))  # channel chunk token batch
    found = _toeplitz(response).unsqueeze(1) @ x
    if x.shape[1] > 1:
        write = torch.cat((cosine, sine), dim=1)[..., :size].flip(-1)
        entered = (write.unsqueeze(1) @ x).unflatten(2, (2, -1))  # channel chunk 2 state batch
        states = _turned(cosine[..., -1:], sine[..., -1:], entered)
        found = found + read[..., 1:].transpose(-1, -2).unsqueeze(1) @ states.flatten(2, 3)
    return found.flatten(1, 2)[:, :tokens].permute(2, 1, 0)


def causal_window(
    x: Float[Tensor, "batch token channel"], taps: Float[Tensor, "channel kernel"]
) -> Float[Tensor, "batch token channel"]:
    """Every channel's last tokens weighed by its own taps, the newest by the last one."""
    kernel = taps.shape[-1]
    padded = nn.functional.pad(x, (0, 0, kernel - 1, 0))
    found = padded[:, kernel - 1 :] * taps[:, -1]
    for back in range(1, kernel):
        found = found + padded[:, kernel - 1 - back : -back] * taps[:, -1 - back]
    return found


def _chunks(x: Tensor, size: int, missing: int) -> Tensor:
    return nn.functional.pad(x, (0, 0, 0, missing)).unflatten(-2, (-1, size))


def _later(size: int, like: Tensor) -> Tensor:
    place = torch.arange(size, device=like.device)
    return place[:, None] < place


def _decays(since: Float[Tensor, "*batch token"]) -> Float[Tensor, "*batch token token"]:
    """From an earlier token to a later one; 0 the other way round."""
    between = since.unsqueeze(-1) - since.unsqueeze(-2)
    return between.masked_fill(_later(since.shape[-1], since), -math.inf).exp()


def _spread(x: Tensor, steps: int) -> Tensor:
    """Every entry of the last dimension once per step of its token."""
    return x if steps == 1 else x.unsqueeze(-1).expand(*x.shape, steps).flatten(-2)


def _carried(factor: Tensor, added: Float[Tensor, "*batch chunk key value"]) -> Tensor:
    """The state at the start of every chunk, where S ← factor S + added from S = 0."""
    states = [torch.zeros_like(added[..., 0, :, :])]
    for chunk in range(added.shape[-3] - 1):
        into = factor[..., chunk, :, :]
        state = into * states[-1] if into.shape[-1] == 1 else into @ states[-1]
        states.append(state + added[..., chunk, :, :])
    return torch.stack(states, dim=-3)


def _turned(cosine: Tensor, sine: Tensor, added: Float[Tensor, "channel chunk 2 state batch"]) -> Tensor:
    """The state at the start of every chunk, where h ← (cosine + i sine) h + added from h = 0."""
    states = [torch.zeros_like(added[:, 0])]
    for chunk in range(added.shape[1] - 1):
        h = states[-1]
        crossed = torch.stack((-h[:, 1], h[:, 0]), dim=1)
        states.append(cosine.unsqueeze(1) * h + sine.unsqueeze(1) * crossed + added[:, chunk])
    return torch.stack(states, dim=1)


def _toeplitz(response: Float[Tensor, "channel lag"]) -> Float[Tensor, "channel later earlier"]:
    """Entry (i, j) is the response at lag i − j, 0 below lag 0: rows of the reversed response, each shifted by one."""
    channels, size = response.shape
    rows = nn.functional.pad(response, (0, size)).unsqueeze(1).expand(channels, size, 2 * size)
    skewed = rows.flatten(1)[:, : size * (2 * size - 1)].unflatten(1, (size, 2 * size - 1))
    return skewed[..., :size].transpose(-1, -2)
