"""Every measure that a cell can name, and where it is: `name → module:function`, imported when first asked for.

A measure is a function of some of `config` (plain JSON), `seed` and `device`; what it returns is plain JSON too. It
stands beside what needs it: a claim's own measurement in the claim's room, one that a command reaches in
`instruments/`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from theodolite.registry import Registry

Measure = Callable[..., dict[str, Any]]

_PLACES = {
    "certified-full-rank": "claims.degree.certified_rank:measure_certified_full_rank",
    "known-epsilon-rank": "claims.degree.known_functions:measure_known_epsilon_rank",
    "tail-bias": "claims.degree.known_functions:measure_tail_bias",
    "loss-minimiser": "claims.degree.loss_distance:measure_loss_minimiser",
    "loss-ranks": "claims.degree.loss_distance:measure_loss_ranks",
    "monomial-epsilon": "claims.degree.monomial_ranks:measure_monomial_epsilon",
    "monomial-matchings": "claims.degree.monomial_ranks:measure_monomial_matchings",
    "monomial-ranks": "claims.degree.monomial_ranks:measure_monomial_ranks",
    "part-ranks": "claims.degree.part_ranks:measure_part_ranks",
    "drawn-function-ranks": "claims.degree.drawn_functions:measure_drawn_function_ranks",
    "random-function-rank": "claims.degree.random_functions:measure_random_function_rank",
    "real-degree-rank": "claims.degree.real_degree_blocks:measure_real_degree_rank",
    "real-degree-training": "claims.degree.real_degree_blocks:measure_real_degree_training",
    "template-bound": "claims.degree.template_bound:measure_template_bound",
    "dyck-attention": "claims.expressivity.attention_limits:measure_dyck_attention",
    "soft-attention": "claims.expressivity.attention_limits:measure_soft_attention",
    "automaton-size": "claims.expressivity.circuit_sizes:measure_automaton_size",
    "circuit-counts": "claims.expressivity.circuit_sizes:measure_circuit_counts",
    "gates": "claims.expressivity.circuit_sizes:measure_gates",
    "minimal-circuits": "claims.expressivity.circuit_sizes:measure_minimal_circuits",
    "minimal-dnf": "claims.expressivity.circuit_sizes:measure_minimal_dnf",
    "random-circuits": "claims.expressivity.circuit_sizes:measure_random_circuits",
    "turing-agreement": "claims.expressivity.circuit_sizes:measure_turing_agreement",
    "turing-size": "claims.expressivity.circuit_sizes:measure_turing_size",
    "enumerated-signal": "claims.expressivity.enumerated_signal:measure_enumerated_signal",
    "failure-activations": "claims.expressivity.failures.activations:measure_failure_activations",
    "failure-curves": "claims.expressivity.failures.curves:measure_failure_curves",
    "failure-parity": "claims.expressivity.failures.parity:measure_failure_parity",
    "failure-elimination": "claims.expressivity.failures.remedies:measure_failure_elimination",
    "failure-guessing": "claims.expressivity.failures.remedies:measure_failure_guessing",
    "failure-stocks": "claims.expressivity.failures.stocks:measure_failure_stocks",
    "failure-tuples-signal": "claims.expressivity.failures.tuple_signal:measure_failure_tuples_signal",
    "failure-tuples": "claims.expressivity.failures.tuples:measure_failure_tuples",
    "implicit-gradient": "claims.expressivity.implicit_gradient:measure_implicit_gradient",
    "composed-pieces": "claims.expressivity.inductive_bias:measure_composed_pieces",
    "graph-symmetry": "claims.expressivity.inductive_bias:measure_graph_symmetry",
    "patterns": "claims.expressivity.inductive_bias:measure_patterns",
    "cosine-landscape": "claims.expressivity.landscape:measure_cosine_landscape",
    "linear-periodic-signal": "claims.expressivity.linear_periodic:measure_linear_periodic_signal",
    "log-law": "claims.expressivity.log_law:measure_log_law",
    "parity-gram": "claims.expressivity.parity_gram:measure_parity_gram",
    "sawtooth-witness": "claims.expressivity.sawtooth_pieces:measure_sawtooth_witness",
    "sawtooth-training": "claims.expressivity.sawtooth_training:measure_sawtooth_training",
    "signal-along": "claims.expressivity.signal_along_training:measure_signal_along",
    "weight-tied": "claims.expressivity.weight_tied:measure_weight_tied",
    "word-problem-witness": "claims.expressivity.word_problem:measure_word_problem_witness",
    "approximation-rate": "claims.sparsity.approximation_rate:measure_approximation_rate",
    "associative-memory": "claims.sparsity.associative_memory:measure_associative_memory",
    "attention-isometry": "claims.sparsity.attention_isometry:measure_attention_isometry",
    "compiled-graph": "claims.sparsity.compiled_sparsity:measure_compiled_graph",
    "random-function-graph": "claims.sparsity.compiled_sparsity:measure_random_function_graph",
    "mask-locality": "claims.sparsity.dense_study:measure_mask_locality",
    "accuracy-by-density": "claims.sparsity.density_study:measure_accuracy_by_density",
    "tree-pruning": "claims.sparsity.density_study:measure_tree_pruning",
    "embedded-convolution": "claims.sparsity.embedding:measure_embedded_convolution",
    "generalisation-bounds": "claims.sparsity.generalisation_bounds:measure_generalisation_bounds",
    "graph-training": "claims.sparsity.graph_study:measure_graph_training",
    "selected-inputs": "claims.sparsity.selected_inputs:measure_selected_inputs",
    "superposition": "claims.sparsity.superposition:measure_superposition",
    "trained-approximation": "claims.sparsity.trained_approximation:measure_trained_approximation",
    "line-degree": "claims.tensors.degree_and_mixing:measure_line_degree",
    "mixing": "claims.tensors.degree_and_mixing:measure_mixing",
    "graded-rank": "claims.tensors.graded_rank:measure_graded_rank",
    "growth-certificate": "claims.tensors.growth_certificate:measure_growth_certificate",
    "special-weights": "claims.tensors.special_weights:measure_special_weights",
    "along-training": "instruments.along_training:measure_along_training",
    "cost": "instruments.cost:measure_cost",
    "degree-training": "instruments.degree.trained:measure_degree_training",
    "fixed-points": "instruments.fixed_points.fixed_points:measure_fixed_points",
    "gradient-signal": "instruments.gradient.signal:measure_gradient_signal",
    "target-signal": "instruments.gradient.target_signal:measure_target_signal",
    "separation-rank": "instruments.rank.measured:measure_separation_rank",
    "spectrum": "instruments.rank.measured:measure_spectrum",
    "sensitivity": "instruments.sensitivity.one_symbol:measure_sensitivity",
    "leakage": "instruments.leakage:measure_leakage",
    "symmetry": "instruments.symmetry:measure_symmetry",
    "depth-against-width": "scaling.measured:measure_depth_against_width",
    "express": "witness.express:measure_express",
}

measures: Registry[Measure] = Registry("measure", {name: f"theodolite.{place}" for name, place in _PLACES.items()})


def measure(name: str, config: Mapping[str, Any], seed: int = 0, device: str = "cpu") -> dict[str, Any]:
    """Run a registered measure; it is given those of the arguments that it names.

    Parameters:
        name: of the measure; `list(measures)` has them all
        config: what to measure, plain JSON
        seed: where its random numbers come from
        device: cpu, cuda, …

    Examples:
        >>> measure("line-degree", {"net": "self-attention", "shape": {"depth": 1, "width": 2, "tokens": 2}})
        {'degree': 3}
    """
    function = measures[name]
    offered = {"config": config, "seed": seed, "device": device}
    return function(**{given: offered[given] for given in inspect.signature(function).parameters})
