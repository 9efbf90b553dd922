"""Recurrent networks in the manner of tutorials and papers."""

import torch
from torch import nn


class GRUTagger(nn.Module):
    """The sequence tagging tutorial: tokens first, embedding and hidden sizes apart."""

    def __init__(self, vocab_size, embedding_dim, hidden_dim, tagset_size=None, num_classes=2):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab_size, embedding_dim)
        self.gru = nn.GRU(embedding_dim, hidden_dim)
        self.hidden2tag = nn.Linear(hidden_dim, num_classes)

    def forward(self, sentence):
        out, _ = self.gru(self.word_embeddings(sentence))
        return self.hidden2tag(out)


class WordLanguageRNN(nn.Module):
    """The word language model example: forward takes and returns a hidden state."""

    def __init__(self, ntoken, ninp, nhid, nlayers, dropout=0.5):
        super().__init__()
        self.nhid, self.nlayers = nhid, nlayers
        self.drop, self.encoder = nn.Dropout(dropout), nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers)
        self.decoder = nn.Linear(nhid, ntoken)

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        return self.decoder(self.drop(output)), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid)


class CharRNN(nn.Module):
    """By hand, input_size and output_size, a loop over tokens."""

    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)
        self.hidden_size = hidden_size

    def forward(self, x):
        h, out = x.new_zeros(x.size(0), self.hidden_size), []
        for t in range(x.size(1)):
            h = torch.tanh(self.i2h(torch.cat([x[:, t], h], dim=1)))
            out.append(self.h2o(h))
        return torch.stack(out, dim=1), h


class BiLSTM(nn.Module):
    def __init__(self, input_dim, hidden_dim, output_dim, num_layers=1):
        super().__init__()
        self.lstm = nn.LSTM(input_dim, hidden_dim, num_layers, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * hidden_dim, output_dim)

    def forward(self, x):
        return self.fc(self.lstm(x)[0])


class MinGRU(nn.Module):
    """Feng et al. 2024: gates without the state, h ← (1 − z) h + z h̃."""

    def __init__(self, dim, vocab_size):
        super().__init__()
        self.emb, self.to_zh = nn.Embedding(vocab_size, dim), nn.Linear(dim, 2 * dim)
        self.head = nn.Linear(dim, vocab_size)

    def forward(self, ids):
        z, h = self.to_zh(self.emb(ids)).chunk(2, dim=-1)
        z, state, out = z.sigmoid(), 0.0, []
        for t in range(ids.shape[1]):
            state = (1 - z[:, t]) * state + z[:, t] * h[:, t]
            out.append(state)
        return {"loss": None, "logits": self.head(torch.stack(out, dim=1))}


class FixedLSTM(nn.Module):
    """No arguments at all."""

    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(16, 24, batch_first=True), nn.Linear(24, 10)

    def forward(self, x):
        return self.out(self.lstm(x)[0])


class KeptState(nn.Module):
    """Keeps its last state, for looking at, and begins each call from zero."""

    def __init__(self, n_vocab, n_classes, hidden=24):
        super().__init__()
        self.emb, self.cell, self.out = nn.Embedding(n_vocab, hidden), nn.GRUCell(hidden, hidden), nn.Linear(hidden, n_classes)
        self.last = None

    def forward(self, ids):
        h, outs = None, []
        for t in range(ids.shape[1]):
            h = self.cell(self.emb(ids[:, t]), h)
            outs.append(self.out(h))
        self.last = h.detach()
        return torch.stack(outs, 1)
