"""Text as numbers: its bytes, or the pieces of a byte-level BPE that was trained on the part that is trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.tasks.shared.corpus import Corpus, files_of, read_corpus

BYTES = 256
_END = "\0"  # after every document: no text holds it


@dataclass(frozen=True)
class Symbols:
    """Ids of all documents one after another; `bytes_per_symbol` is that of what is held out."""

    trained: Tensor
    held_out: Tensor
    bytes_per_symbol: float


@lru_cache(maxsize=4)
def read_symbols(where: str, digest: str, size: int) -> Symbols:
    """The text `where` in a vocabulary of this size; `digest` is the text's own, so that a changed one is read anew."""
    corpus = read_corpus(where)
    assert corpus.digest == digest, "the text changed while it was read"
    encode = _bytes if size == BYTES else _Pieces(where, corpus, size)
    trained, held_out = encode(corpus.trained), encode(corpus.held_out)
    long = sum(len(document) + 1 for document in corpus.held_out)
    return Symbols(torch.from_numpy(trained), torch.from_numpy(held_out), long / len(held_out))


def _bytes(documents: Sequence[bytes]) -> np.ndarray:
    joined = b"".join(document + b"\0" for document in documents)
    return np.frombuffer(joined, dtype=np.uint8).astype(np.int64)


class _Pieces:
    """Trained once, on what is trained on."""

    def __init__(self, where: str, corpus: Corpus, size: int) -> None:
        try:
            from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
        except ImportError as error:
            raise BadInput(
                f"a vocabulary of {size} is made by the package tokenizers, which is not installed: "
                f"pip install 'theodolite[text]', or use --vocabulary {BYTES} for bytes"
            ) from error
        self._where = where
        made: Any = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=[_END],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        made.train_from_iterator(self._texts(corpus.trained), trainer)
        if made.get_vocab_size() < size:
            raise BadInput(
                f"'{where}' supports a vocabulary of {made.get_vocab_size()} and not of {size}: "
                "choose a smaller one, or give more text"
            )
        self._pieces = made

    def __call__(self, documents: Sequence[bytes]) -> np.ndarray:
        encoded = self._pieces.encode_batch_fast(self._texts(documents))
        end = np.array([self._pieces.token_to_id(_END)], dtype=np.int64)
        return np.concatenate([part for each in encoded for part in (np.array(each.ids, dtype=np.int64), end)])

    def _texts(self, documents: Sequence[bytes]) -> list[str]:
        try:
            return [document.decode("utf-8") for document in documents]
        except UnicodeDecodeError as error:
            raise BadInput(
                f"{_not_utf8(self._where)}: use --vocabulary {BYTES}, which reads bytes, or give UTF-8"
            ) from error


def _not_utf8(where: str) -> str:
    """Which file it is: documents are parts of files and have no name."""
    for path in files_of(where):
        try:
            path.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            return f"'{path}' is not UTF-8 (byte {error.start})"
    return f"a document of '{where}' is not UTF-8"
