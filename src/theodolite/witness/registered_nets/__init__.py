"""Explicit weights inside the registered nets: the very classes that are trained elsewhere, here with nothing trained.

Importing this package registers the constructions. A Boolean task becomes a small program of sign units
(`sign_program`, `boolean_programs`), a task of one real direction a profile (`profile`), a string task a state machine
(`state_machine`); one file per architecture turns these into parameters.
"""

from theodolite.witness import tent
from theodolite.witness.registered_nets import convolution, mlp, recurrent, transformer

__all__ = ["convolution", "mlp", "recurrent", "tent", "transformer"]
