"""An ONNX file read and run without any library: the few operations that our files use, in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np


def fields(content: bytes) -> dict[int, list[Any]]:
    """The fields of a message of protocol buffers by number: numbers, or bytes."""
    found: dict[int, list[Any]] = {}
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = content[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value - (1 << 64) if value >> 63 else value

    while place < len(content):
        key = varint()
        value: Any = varint()
        if key & 7 == 2:
            value, place = content[place : place + value], place + value
        found.setdefault(key >> 3, []).append(value)
    return found


def tensor(content: bytes) -> tuple[str, np.ndarray]:
    one = fields(content)
    kind = {11: np.float64, 7: np.int64}[one[2][0]]
    return one[8][0].decode(), np.frombuffer(one[9][0], kind).reshape(one.get(1, []))


def run(content: bytes, x: np.ndarray) -> np.ndarray:
    graph = fields(fields(content)[7][0])
    known = dict(tensor(one) for one in graph[5]) | {"x": x}
    for encoded in graph[1]:
        node = fields(encoded)
        attributes = {fields(a)[1][0].decode(): fields(a).get(8) or fields(a)[3][0] for a in node.get(5, [])}
        inputs = [known[name.decode()] for name in node[1]]
        known[node[2][0].decode()] = apply(node[4][0].decode(), inputs, attributes)
    return known["y"]


def apply(kind: str, inputs: list[np.ndarray], attributes: dict[str, Any]) -> np.ndarray:
    first, *rest = inputs
    simple = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "MatMul": np.matmul}
    if kind in simple:
        return simple[kind](first, rest[0])
    if kind == "Expand":
        return first * np.ones(rest[0])
    if kind == "Concat":
        return np.concatenate(inputs, axis=attributes["axis"])
    if kind == "Gather":
        return np.take(first, rest[0], axis=attributes["axis"])
    if kind == "GatherElements":
        return np.take_along_axis(first, rest[0], axis=attributes["axis"])
    return {
        "Cast": lambda: first.astype({7: np.int64}[attributes["to"]]),
        "LessOrEqual": lambda: first <= rest[0],
        "Min": lambda: np.minimum(first, rest[0]),
        "Relu": lambda: np.maximum(first, 0),
        "Exp": lambda: np.exp(first),
        "Sqrt": lambda: np.sqrt(first),
        "Neg": lambda: -first,
        "Where": lambda: np.where(first, rest[0], rest[1]),
        "Tanh": lambda: np.tanh(first),
        "Transpose": lambda: first.transpose(attributes["perm"]),
        "Unsqueeze": lambda: np.expand_dims(first, tuple(rest[0])),
        "Reshape": lambda: first.reshape(rest[0]),
        "ReduceSum": lambda: first.sum(axis=tuple(rest[0]), keepdims=bool(attributes["keepdims"])),
    }[kind]()
