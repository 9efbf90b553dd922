"""Attention in the manner of minGPT, nanoGPT, Llama and others."""

import math
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from layers_nearby import FeedForward, RMSNorm
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        assert config.n_embd % config.n_head == 0
        self.c_attn, self.c_proj = nn.Linear(config.n_embd, 3 * config.n_embd), nn.Linear(config.n_embd, config.n_embd)
        self.attn_dropout, self.n_head = nn.Dropout(config.attn_pdrop), config.n_head
        mask = torch.tril(torch.ones(config.block_size, config.block_size))
        self.register_buffer("bias", mask.view(1, 1, config.block_size, config.block_size))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in self.c_attn(x).split(C, dim=2))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = F.softmax(att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf")), dim=-1)
        return self.c_proj((self.attn_dropout(att) @ v).transpose(1, 2).contiguous().view(B, T, C))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(config.n_embd), nn.LayerNorm(config.n_embd)
        self.attn = CausalSelfAttention(config)
        self.mlp = nn.Sequential(
            nn.Linear(config.n_embd, 4 * config.n_embd), nn.GELU(), nn.Linear(4 * config.n_embd, config.n_embd),
            nn.Dropout(config.resid_pdrop),
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class MinGPT(nn.Module):
    """Its configuration is an object of attributes that no class here states."""

    def __init__(self, config):
        super().__init__()
        self.block_size = config.block_size
        self.wte, self.wpe = nn.Embedding(config.vocab_size, config.n_embd), nn.Embedding(config.block_size, config.n_embd)
        self.drop = nn.Dropout(config.embd_pdrop)
        self.h = nn.ModuleList([Block(config) for _ in range(config.n_layer)])
        self.ln_f, self.lm_head = nn.LayerNorm(config.n_embd), nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def forward(self, idx, targets=None):
        b, t = idx.size()
        assert t <= self.block_size
        x = self.drop(self.wte(idx) + self.wpe(torch.arange(t, device=idx.device)))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        loss = None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return logits, loss


@dataclass
class NanoGPTConfig:
    block_size: int = 256
    vocab_size: int = 50304
    n_layer: int = 2
    n_head: int = 4
    n_embd: int = 32
    dropout: float = 0.0
    embd_pdrop: float = 0.0
    attn_pdrop: float = 0.0
    resid_pdrop: float = 0.0


class NanoGPT(MinGPT):
    """A dataclass of configuration, and tied embeddings."""

    def __init__(self, config: NanoGPTConfig):
        super().__init__(config)
        self.wte.weight = self.lm_head.weight


@dataclass
class ModelArgs:
    dim: int = 32
    n_layers: int = 2
    n_heads: int = 4
    vocab_size: int = -1
    norm_eps: float = 1e-5
    max_seq_len: int = 512
    rope: dict = field(default_factory=lambda: {"theta": 10000.0})


class LlamaStyle(nn.Module):
    """Rotary positions in complex numbers, RMS norm of a neighbouring file, `start_pos` in forward."""

    def __init__(self, params: ModelArgs):
        super().__init__()
        self.params, d = params, params.dim
        self.tok_embeddings = nn.Embedding(params.vocab_size, d)
        self.wqkv = nn.ModuleList(nn.Linear(d, 3 * d, bias=False) for _ in range(params.n_layers))
        self.ffn = nn.ModuleList(FeedForward(d, 2 * d) for _ in range(params.n_layers))
        self.norms = nn.ModuleList(RMSNorm(d, params.norm_eps) for _ in range(2 * params.n_layers + 1))
        self.output = nn.Linear(d, params.vocab_size, bias=False)
        head = d // params.n_heads
        freqs = 1.0 / (params.rope["theta"] ** (torch.arange(0, head, 2)[: head // 2].float() / head))
        angles = torch.outer(torch.arange(2 * params.max_seq_len), freqs)
        self.freqs_cis = torch.polar(torch.ones_like(angles), angles)

    def rotate(self, x, freqs):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * freqs[:, None]).flatten(3).type_as(x)

    def forward(self, tokens: torch.Tensor, start_pos: int):
        _bsz, seqlen = tokens.shape
        h, heads = self.tok_embeddings(tokens), self.params.n_heads
        freqs = self.freqs_cis.to(h.device)[start_pos : start_pos + seqlen]
        mask = torch.full((seqlen, seqlen), float("-inf"), device=tokens.device).triu(1)
        for layer, (wqkv, ffn) in enumerate(zip(self.wqkv, self.ffn)):
            q, k, v = (t.unflatten(-1, (heads, -1)) for t in wqkv(self.norms[2 * layer](h)).chunk(3, -1))
            q, k = self.rotate(q, freqs), self.rotate(k, freqs)
            scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1]) + mask
            h = h + torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).flatten(2)
            h = h + ffn(self.norms[2 * layer + 1](h))
        return self.output(self.norms[-1](h)).float()


class TransformerModel(nn.Module):
    """The tutorial on nn.Transformer: tokens first, sinusoids of odd shape."""

    def __init__(self, ntoken, d_model, nhead, d_hid=64, nlayers=1, dropout=0.1, max_len=500):
        super().__init__()
        self.encoder, self.linear = nn.Embedding(ntoken, d_model), nn.Linear(d_model, ntoken)
        layer = nn.TransformerEncoderLayer(d_model, nhead, d_hid, dropout)
        self.transformer_encoder, self.d_model = nn.TransformerEncoder(layer, nlayers), d_model
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2], pe[:, 0, 1::2] = torch.sin(position * div_term), torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, src, src_mask=None):
        src = self.encoder(src) * math.sqrt(self.d_model) + self.pe[: src.size(0)]
        if src_mask is None:
            src_mask = nn.Transformer.generate_square_subsequent_mask(len(src), device=src.device)
        return self.linear(self.transformer_encoder(src, src_mask))


class ALiBi(nn.Module):
    """One layer, numbers in, slopes in a buffer, an argument for what it reads that is called n_inputs."""

    def __init__(self, n_inputs, n_outputs, n_heads=4, head_dim=8):
        super().__init__()
        self.heads, width = n_heads, n_heads * head_dim
        self.inp, self.qkv, self.out = nn.Linear(n_inputs, width), nn.Linear(width, 3 * width), nn.Linear(width, n_outputs)
        self.register_buffer("slopes", 2.0 ** (-8.0 * torch.arange(1, n_heads + 1) / n_heads), persistent=False)

    def forward(self, x):
        T = x.shape[1]
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.inp(x)).chunk(3, -1))
        places = torch.arange(T, device=x.device)
        bias = (places[None] - places[:, None]).clamp(max=0) * self.slopes[:, None, None]
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5 + bias
        scores = scores.masked_fill(places[None] > places[:, None], -torch.inf)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class LinearAttention(nn.Module):
    """`**kwargs` down to a parent."""

    def __init__(self, feature_map="elu", **kwargs):
        super().__init__()
        dim = kwargs.get("dim", 32)
        self.emb, self.qkv = nn.Embedding(kwargs["vocab_size"], dim), nn.Linear(dim, 3 * dim)
        self.head, self.feature_map = nn.Linear(dim, kwargs["num_classes"]), feature_map

    def forward(self, x):
        q, k, v = self.qkv(self.emb(x)).chunk(3, dim=-1)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        kv = torch.einsum("bti,btj->btij", k, v).cumsum(1)
        norm = torch.einsum("bti,bti->bt", q, k.cumsum(1)).unsqueeze(-1)
        return self.head(torch.einsum("bti,btij->btj", q, kv) / norm)


class SlidingWindow(nn.Module):
    """Attention over the last `window` tokens, by torch's own function; dictionary of configuration."""

    def __init__(self, config):
        super().__init__()
        d = config["d_model"]
        self.embed, self.qkv, self.head = nn.Embedding(config["vocab_size"], d), nn.Linear(d, 3 * d), nn.Linear(d, config["num_labels"])
        self.window = config.get("window", 4)

    def forward(self, input_ids):
        q, k, v = self.qkv(self.embed(input_ids)).chunk(3, -1)
        places = torch.arange(q.shape[1], device=q.device)
        back = places[:, None] - places[None]
        seen = (back >= 0) & (back < self.window)
        return self.head(F.scaled_dot_product_attention(q, k, v, attn_mask=seen))


class EncoderClassifier(nn.Module):
    """Not causal, a mask of what is present that nobody gives."""

    def __init__(self, num_embeddings, num_classes, embed_dim=32, num_heads=4):
        super().__init__()
        self.embedding = nn.Embedding(num_embeddings, embed_dim)
        self.attn, self.norm = nn.MultiheadAttention(embed_dim, num_heads, batch_first=True), nn.LayerNorm(embed_dim)
        self.classifier = nn.Linear(embed_dim, num_classes)

    def forward(self, input_ids, attention_mask=None):
        x = self.embedding(input_ids)
        return self.classifier(self.norm(x + self.attn(x, x, x, key_padding_mask=attention_mask)[0]))
