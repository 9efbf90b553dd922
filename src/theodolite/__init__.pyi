from theodolite.advice.advice import advise as advise
from theodolite.bench.compare import compare as compare
from theodolite.bench.learn import learn as learn
from theodolite.bench.new import new as new
from theodolite.bench.runs import runs as runs
from theodolite.bench.settings import Evaluation as Evaluation
from theodolite.bench.settings import Saving as Saving
from theodolite.bench.settings import Training as Training
from theodolite.claims.certificates import verify as verify
from theodolite.claims.check import check_claims as check_claims
from theodolite.claims.judge import list_claims as list_claims
from theodolite.claims.reproduce import reproduce as reproduce
from theodolite.errors import TheodoliteError as TheodoliteError
from theodolite.instruments.degree.which_degree import degree as degree
from theodolite.instruments.fixed_points.fixed_points import fixed_points as fixed_points
from theodolite.instruments.gradient.signal import signal as signal
from theodolite.instruments.rank.separation import separation_rank as rank
from theodolite.lab.engines.by_name import Cluster as Cluster
from theodolite.lab.running import Running as Running
from theodolite.nets.contract import list_nets as list_nets
from theodolite.partition import Partition as Partition
from theodolite.scaling.scale import scale as scale
from theodolite.serving.serve import serve as serve
from theodolite.structure.classifier import CompositionalClassifier as CompositionalClassifier
from theodolite.structure.discover import discover as discover
from theodolite.structure.predictions import predict as predict
from theodolite.structure.regressor import CompositionalRegressor as CompositionalRegressor
from theodolite.surveys.run import survey as survey
from theodolite.tasks.contract import list_tasks as list_tasks
from theodolite.version import __version__ as __version__
from theodolite.witness.express import express as express

# Names until 0.2, kept for one release.
advise_shape = advise
run_survey = survey
separation_rank = rank
