"""What checks the annotations at run time: a whole number is also a float, as in every type checker."""

from __future__ import annotations

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
