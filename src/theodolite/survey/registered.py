"""Every section, in the order of the report: importing this module registers them."""

from theodolite.survey import learnability  # isort: split

from theodolite.survey import matrix  # isort: split

from theodolite.survey import sensitivity  # isort: split

from theodolite.survey import spectrum  # isort: split

from theodolite.survey import separation  # isort: split

from theodolite.survey import symmetry  # isort: split

from theodolite.survey import cost  # isort: split

from theodolite.survey import scoreboard

__all__ = ["cost", "learnability", "matrix", "scoreboard", "sensitivity", "separation", "spectrum", "symmetry"]
