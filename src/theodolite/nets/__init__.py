"""Architectures, one family per file; a file registers what it defines, and importing this folder registers all."""

import importlib
import pkgutil

from theodolite.nets.contract import NetEntry, Prediction, list_nets, nets

__all__ = ["NetEntry", "Prediction", "list_nets", "nets"]

for _file in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_file.name)
