"""Every construction: importing this module registers them."""

from theodolite.witness import boolean_nets, registered_nets
from theodolite.witness.contract import architectures, constructions

__all__ = ["architectures", "boolean_nets", "constructions", "registered_nets"]
