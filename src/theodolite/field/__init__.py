"""Exact linear algebra over GF(p) on float64 tensors, CPU and CUDA; no network and no theory lives here."""

from theodolite.field.draw import draw_prime, draw_residues
from theodolite.field.eliminate import Elimination, eliminate, rank
from theodolite.field.modulus import Modulus
from theodolite.field.product import product
from theodolite.field.tensor import FieldTensor

__all__ = ["Elimination", "FieldTensor", "Modulus", "draw_prime", "draw_residues", "eliminate", "product", "rank"]
