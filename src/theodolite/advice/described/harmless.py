"""Fields that say nothing of how many parameters a model has, whatever the family."""

from __future__ import annotations

import re

# fmt: off
_NAMES = frozenset((
    "_attn_implementation", "_name_or_path", "activation_function", "apply_query_key_layer_scaling",
    "apply_residual_connection_post_layernorm", "architectures", "attention_layers", "attention_multiplier",
    "attention_softmax_in_fp32", "attention_types", "attn_implementation", "attn_logit_softcapping", "auto_map",
    "bad_words_ids", "begin_suppress_tokens", "bf16", "bias_dropout_fusion", "cache_implementation",
    "chunk_size_feed_forward", "diversity_penalty", "do_sample", "dtype", "early_stopping", "embedding_multiplier",
    "encoder_no_repeat_ngram_size", "ep_size", "exponential_decay_length_penalty", "final_logit_softcapping",
    "finetuning_task", "forced_bos_token_id", "forced_eos_token_id", "fp16", "fp32", "fp32_residual_connection",
    "gradient_checkpointing", "gradient_checkpointing_func", "hidden_act", "hidden_activation", "hidden_dropout",
    "id2label", "is_decoder", "label2id", "layer_norm_epsilon", "length_penalty", "logits_scaling", "max_length",
    "max_window_layers", "min_length", "mlp_dim_scale", "mlp_hidden_act", "model_type", "n_group", "name_or_path",
    "no_repeat_ngram_size", "norm_topk_prob", "num_beam_groups", "num_beams", "num_return_sequences", "onnx",
    "original_rope", "output_attentions", "output_hidden_states", "output_router_logits", "output_scores",
    "partial_rotary_factor", "prefix", "pretraining_tp", "problem_type", "pruned_heads", "quantization_config",
    "query_pre_attn_scalar", "remove_invalid_values", "reorder_and_upcast_attn", "repetition_penalty",
    "residual_multiplier", "return_dict", "return_dict_in_generate", "rotary", "rotary_emb_base", "rotary_pct",
    "routed_scaling_factor", "scale_attn_by_inverse_layer_idx", "scale_attn_weights", "scoring_func", "seq_aux",
    "sliding_window", "softmax_scale", "summary_activation", "summary_first_dropout", "suppress_tokens",
    "task_specific_params", "temperature", "tf_legacy_loss", "tie_encoder_decoder", "tokenizer_class", "top_p",
    "topk_group", "topk_method", "torch_dtype", "torchscript", "transformers_version", "typical_p", "unsloth_version",
    "use_bfloat16", "use_cache", "use_dynamic_ntk", "use_flash_attn", "use_logn_attn", "use_sliding_window",
))
# fmt: on
_PATTERNS = re.compile(
    r"(_token_id|_token_ids|_token_index|token_index|_dropout|_dropout_prob|dropout|_drop|_pdrop|_eps|eps|epsilon)$"
    r"|^(dropout|drop_path|layerdrop|rope_|initializer_|init_|mask_time|mask_feature|ctc_|output_)"
    r"|(initializer|init_std|aux_loss|z_loss|jitter|loss_coef|loss_weight|layerdrop|_std|softcap|_range|capacity_factor)"
    r"|^text_config\.(rope_|_name_or_path)"
)

_WHOLE = (
    *("rope_parameters.", "rope_scaling.", "id2label.", "label2id.", "auto_map.", "task_specific_params."),
    *("quantization_config.", "generation_config.", "compression_config."),
)


def is_harmless(name: str) -> bool:
    """By its name alone, the last one where it is nested."""
    last = name.rpartition(".")[2]
    if any(inside in name for inside in _WHOLE):
        return True
    return last in _NAMES or _PATTERNS.search(last) is not None
