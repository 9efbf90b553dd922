"""Files that nobody means, for every command that reads one: nested, broken, endless, forged.

Nothing that is read is code: what a forged file would run leaves the file `ran` in the folder, which must not be there.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import sqlite3
import struct
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

RAN = "ran"  # what code in a forged file would make
FORGED = {"pickle.pt", "torch.pt", "torch.safetensors", "pickle.json", "pickle.parquet", "store", "folder"}

READERS: dict[str, list[str]] = {
    "advise": ["advise", "FILE"],
    "advise-like": ["advise", "FILE", "--params", "2M"],
    "discover": ["discover", "FILE", "--target", "y", "--seconds", "3", "--out", "d2"],
    "discover-black-box": ["discover", "FILE:f", "--seconds", "3", "--out", "d2"],
    "predict": ["predict", "FILE", "table.csv"],
    "predict-table": ["predict", "d", "FILE"],
    "verify": ["verify", "FILE"],
    "rank": ["rank", "FILE:Net"],
    "rank-weights": ["rank", "mlp", "--width", "2", "--weights", "FILE"],
    "rank-config": ["rank", "hf:FILE"],
    "learn-data": ["learn", "--net", "mlp", "--data", "FILE", "--steps", "2", "--seeds", "1"],
    "learn-weights": ["learn", "--net", "mlp", "--task", "parity", "--weights", "FILE", "--steps", "2"],
    "learn-checkpoint": ["learn", "--net", "mlp", "--task", "parity", "--checkpoint", "FILE", "--out", "l2"],
    "learn-out": ["learn", "--net", "mlp", "--task", "parity", "--steps", "2", "--seeds", "1", "--out", "FILE"],
    "learn-task": ["learn", "--net", "mlp", "--task", "FILE:Task", "--steps", "2", "--seeds", "1"],
    "survey": ["survey", "FILE:Net", "--only", "sensitivity", "--out", "s2"],
    "survey-out": ["survey", "mlp", "--only", "sensitivity", "--alone", "--out", "FILE"],
    "scale": ["scale", "FILE", "--sizes", "2k", "--depths", "1", "--context", "16", "--tokens", "1", "--out", "t2"],
    "runs": ["runs", "--out", "FILE"],
    "compare": ["compare", "mlp", "rnn", "--out", "FILE"],
    "signal-class": ["signal", "--bits", "4", "--width", "4", "--class", "FILE:f"],
    "fixed-points": ["fixed-points", "FILE:f", "--size", "2"],
    "reproduce": ["reproduce", "chomsky", "--kept", "--out", "FILE"],
    "claims": ["claims", "page", "FILE"],
    "plot": ["fixed-points", "tanh", "--size", "2", "--basin", "FILE"],
    "csv": ["runs", "--out", "l", "--csv", "FILE"],
}


class Runs:
    """Unpickled, it runs a command."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch '{self.marker}'",)


def make_files(folder: Path) -> list[str]:
    """Everything below, in `folder`; the names to give."""
    for name, content in _texts().items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    made = list(_texts())
    for name, make in _OTHERS.items():
        make(folder / name, folder / RAN)
        made.append(name)
    return [*made, "/dev/full", "/dev/null", "missing.json", "x" * 5000]


def _texts() -> dict[str, str | bytes]:
    table = "a,b,y\n" + "".join(f"{i},{i % 3},{i * 2}\n" for i in range(60))
    shape = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    shape |= {"vocab_size": 100, "intermediate_size": 128}
    return {
        "empty.json": "",
        "empty.csv": "",
        "deep.json": "[" * 100_000 + "]" * 100_000,
        "deep-objects.json": '{"a":' * 100_000 + "1" + "}" * 100_000,
        "deep.jsonl": '{"input": ' + "[" * 100_000 + "]" * 100_000 + ', "target": 1}\n',
        "digits.json": json.dumps(shape)[:-1] + ', "vocab_size": ' + "9" * 5000 + "}",
        "digits.jsonl": '{"input": [' + "9" * 5000 + '], "target": 1}\n',
        "digits.csv": table + "9" * 5000 + ",1,2\n",
        "nan.json": json.dumps({**shape, "hidden_size": float("nan"), "vocab_size": float("inf")}),
        "nan.jsonl": '{"input": [NaN, Infinity], "target": NaN}\n' * 20,
        "full-width.json": json.dumps({**shape, "hidden_size": "６４"}, ensure_ascii=False),
        "full-width.csv": table + "１２,٣,１\n",
        "negative.json": json.dumps({**shape, "hidden_size": -64, "num_hidden_layers": 0}),
        "huge.json": json.dumps({**shape, "num_hidden_layers": 10**12, "hidden_size": 10**9}),
        "list.json": "[1, 2, 3]",
        "word.json": '"a"',
        "null.json": "null",
        "twice.json": '{"model_type": "llama", "model_type": "gpt2"}',
        "cut.json": json.dumps(shape)[:-9],
        "latin.json": '{"model_type": "caf\xe9"}'.encode("latin-1"),
        "surrogate.json": '{"model_type": "\\ud800"}',
        "broken-utf-8.csv": b"a,b,y\n\xff\xfe,\x80,1\n" * 40,
        "nul.csv": b"a,b,y\n1,\0,2\n" * 40,
        "huge-field.csv": "a,b,y\n" + "1" * 3_000_000 + ",1,2\n" + "1,2,3\n" * 40,
        "wide.csv": ",".join(f"c{i}" for i in range(3000)) + ",y\n" + ("1," * 3000 + "1\n") * 5,
        "header.csv": "a,b,y\n",
        "one-row.csv": "a,b,y\n1,2,3\n",
        "twice.csv": "y,y,y\n1,2,3\n" * 30,
        "ragged.csv": "a,b,y\n1,2\n1,2,3,4\n" * 30,
        "infinite.csv": "a,b,y\n" + "inf,1e999,-inf\n" * 40,
        "constant.csv": "a,b,y\n" + "1,1,1\n" * 60,
        "quotes.csv": 'a,b,y\n"1,2,3\n' * 30,
        "br[ack]ets.csv": table,
        "[bold]x.json": json.dumps(shape),
        "new\nline.csv": table,
        "new\nline.json": "{",
        "☃.json": "{",
        "garbage.pt": os.urandom(3000),
        "garbage.safetensors": os.urandom(3000),
        "garbage.onnx": os.urandom(3000),
        "garbage.parquet": b"PAR1" + os.urandom(3000) + b"PAR1",
        "long.safetensors": struct.pack("<Q", 2**63 - 1) + b"{}",
        "outside.safetensors": _safetensors({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 2**60]}}),
        "overlap.safetensors": _safetensors({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 8]}}),
        "kind.safetensors": _safetensors({"a": {"dtype": "PICKLE", "shape": [2], "data_offsets": [0, 8]}}),
        "syntax.py": "def f(:\n",
        "exits.py": "import sys\nsys.exit(3)\n",
        "raises.py": "raise RuntimeError('no\\nno')\n",
        "no-module.py": "f = 1\nNet = 'text'\nTask = None\n",
        "certificate.json": json.dumps(
            {"format": "theodolite certificate", "version": 1, "net": "mlp", "rank": "9" * 5000}
        ),
        "certificate.jsonl": ("[" * 100_000 + "]" * 100_000 + "\n") * 2,
    }


def _safetensors(header: dict[str, Any]) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(16)


def _pickle(path: Path, marker: Path) -> None:
    path.write_bytes(pickle.dumps(Runs(marker)))


def _torch(path: Path, marker: Path) -> None:
    """As torch.save writes it, with an object that is no tensor."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"weight": Runs(marker)}))
        archive.writestr("archive/version", "3\n")


def _folder(path: Path, _marker: Path) -> None:
    path.mkdir()


def _loop(path: Path, _marker: Path) -> None:
    path.symlink_to(path.name)


def _pipe(path: Path, _marker: Path) -> None:
    os.mkfifo(path)


def _endless(path: Path, _marker: Path) -> None:
    path.symlink_to("/dev/zero")


def _unreadable(path: Path, _marker: Path) -> None:
    path.write_text("{}")
    path.chmod(0)


def _discovery(path: Path, marker: Path) -> None:
    """A folder of discover's, of which every file is forged."""
    path.mkdir()
    for name in ("graph.json", "discovery.json", "network.json", "columns.json", "preparation.json", "model.json"):
        (path / name).write_text('{"' + "a" * 10 + '": ' + "[" * 5000 + "]" * 5000 + "}")
    for name in ("network.pt", "weights.safetensors", "network.safetensors", "model.pkl", "network.onnx"):
        _torch(path / name, marker)
    _pickle(path / "config.json", marker)


def _store(path: Path, marker: Path) -> None:
    """A store of ours by its header, whose tables are views, triggers and pickles."""
    path.mkdir()
    with closing(sqlite3.connect(path / "store.db")) as db:
        db.execute("PRAGMA application_id = 0x7468656F")
        db.execute("PRAGMA user_version = 1")
        db.execute("CREATE TABLE kept (key, measure, config, result, error, facts, number)")
        load = f"load_extension('{marker}')"
        db.execute(f"CREATE VIEW rows AS SELECT key, {load} AS result, error, facts, number FROM kept")
        db.execute("CREATE TABLE cells (key, measure, config)")
        db.execute("CREATE TABLE owners (token, host, place, pid, start, seen)")
        db.execute("CREATE TABLE groups (number, id, settings, step, checkpoint, attempts, owner)")
        db.execute("CREATE TABLE members (number, place, key)")
        db.execute(f"CREATE TRIGGER t AFTER INSERT ON groups BEGIN SELECT writefile('{marker}', 'x'); END")
        db.execute(
            "INSERT INTO kept VALUES ('k', 'training', ?, ?, 'null', '{}', 1)", (pickle.dumps(Runs(marker)),) * 2
        )
        db.execute("INSERT INTO cells VALUES ('k', 'training', ?)", (pickle.dumps(Runs(marker)),))
        db.commit()


def _deep_store(path: Path, _marker: Path) -> None:
    """A sound store but for one row, nested too deep to be read."""
    from theodolite.lab.store.store import Store

    with Store(path):
        pass
    deep = "[" * 100_000 + "]" * 100_000
    with closing(sqlite3.connect(path / "store.db")) as db:
        db.execute("INSERT INTO cells VALUES ('k', 'training', ?)", (deep,))
        db.execute("INSERT INTO rows (key, result, error, facts) VALUES ('k', ?, 'null', ?)", (deep, deep))
        db.execute(
            'INSERT INTO failures (time, "group", cells, sentence, traceback, retried, host, pid) '
            "VALUES ('t', 'g', ?, 's', 't', 0, 'h', 1)",
            (deep,),
        )
        db.commit()


def _zip_bomb(path: Path, _marker: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(50_000_000))
    path.write_bytes(content.getvalue())


_OTHERS: dict[str, Callable[[Path, Path], None]] = {
    "pickle.pt": _pickle,
    "pickle.json": _pickle,
    "pickle.parquet": _pickle,
    "torch.pt": _torch,
    "torch.safetensors": _torch,
    "bomb.pt": _zip_bomb,
    "folder.csv": _folder,
    "folder.json": _folder,
    "folder": _discovery,
    "store": _store,
    "deep-store": _deep_store,
    "loop.json": _loop,
    "pipe.csv": _pipe,
    "pipe.json": _pipe,
    "endless.csv": _endless,
    "unreadable.json": _unreadable,
}
