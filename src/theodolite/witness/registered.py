"""Every construction: importing this module registers them."""

from collections.abc import Mapping

from theodolite.witness import attention_nets, boolean_nets, registered_nets
from theodolite.witness.contract import architectures, constructions

# What a user may ask of the architectures that only witnesses have.
ARGUMENTS: Mapping[str, tuple[str, ...]] = {**boolean_nets.ARGUMENTS, "soft-attention": attention_nets.ARGUMENTS}

__all__ = ["ARGUMENTS", "architectures", "attention_nets", "boolean_nets", "constructions", "registered_nets"]
