"""Formulas of the descriptions: sums of products of fields, and a few whole-number functions of two of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

# @kind:a/b
_OF_TWO: dict[str, Callable[[int, int], int]] = {
    "head": lambda width, heads: width // heads,
    "grid": lambda image, patch: (image // patch) ** 2,
    "over": lambda layers, first: max(0, layers - first),
    "under": lambda layers, first: min(layers, first),
    "floor": lambda layers, step: layers // step,
    "ceil": lambda layers, step: -(-layers // step),
}


class NotStated(Exception):
    """A field that a formula needs has no value, or one that is no number; the text is its name."""


def derived(name: str, fields: Mapping[str, Any]) -> int:
    kind, _, pair = name[1:].partition(":")
    one, two = pair.split("/")
    a, b = int(number(one, fields)), int(number(two, fields))
    if kind in ("head", "floor", "ceil", "grid") and not b:
        raise NotStated(two)
    return _OF_TWO[kind](a, b)


def number(name: str, fields: Mapping[str, Any]) -> Fraction:
    value = fields.get(name)
    if not isinstance(value, int | float) or value != value or value in (float("inf"), float("-inf")):
        raise NotStated(name)
    return Fraction(value).limit_denominator(10**6)


def evaluate(formula: str, fields: Mapping[str, Any]) -> Fraction:
    """3*a*b + 1/2*c"""
    total = Fraction(0)
    for product in formula.split(" + "):
        factor, *names = product.split("*")
        worth = Fraction(factor)
        for name in names:
            worth *= derived(name, fields) if name.startswith("@") else number(name, fields)
        total += worth
    return total


def evaluate_rule(rule: str, fields: Mapping[str, Any]) -> int | None:
    """What is filled in for a size that is not stated: a, 4*a, a/b where that is whole, or a/16 rounded up."""
    if "/" in rule:
        one, two = rule.split("/")
        a, b = fields.get(one), int(two) if two.isdigit() else fields.get(two)
        if type(a) is not int or type(b) is not int or b < 1:
            return None
        return -(-a // b) if two.isdigit() else a // b
    factor, _, name = rule.rpartition("*")
    value = fields.get(name)
    return None if type(value) is not int else int(factor or 1) * value
