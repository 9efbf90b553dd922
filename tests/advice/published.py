"""Published configurations that are easily counted wrong, each with the parameters of its (language) model."""

from __future__ import annotations

from typing import Any

DBRX = {
    "model_type": "dbrx",
    "architectures": ["DbrxForCausalLM"],
    **{"d_model": 6144, "n_heads": 48, "n_layers": 40, "max_seq_len": 32768, "vocab_size": 100352},
    "attn_config": {"clip_qkv": 8, "kv_n_heads": 8, "model_type": "", "rope_theta": 500000},
    "ffn_config": {
        **{"ffn_hidden_size": 10752, "model_type": "", "moe_jitter_eps": 0, "moe_loss_weight": 0.05},
        **{"moe_num_experts": 16, "moe_top_k": 4},
    },
    "tie_word_embeddings": False,
}
_LLAMA4_TEXT = {
    "model_type": "llama4_text",
    **{"hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_hidden_layers": 48},
    **{"num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 202048},
    **{"attention_chunk_size": 8192, "num_experts_per_tok": 1, "hidden_act": "silu", "use_qk_norm": False},
    **{"max_position_embeddings": 1048576, "tie_word_embeddings": False, "rms_norm_eps": 1e-5},
}
_LLAMA4_VISION = {
    "model_type": "llama4_vision_model",
    **{"hidden_size": 1408, "intermediate_size": 5632, "num_hidden_layers": 34, "num_attention_heads": 16},
    **{"image_size": 336, "patch_size": 14, "vision_output_dim": 4096, "projector_input_dim": 4096},
}


def _llama4(experts: int, step: int) -> dict[str, Any]:
    text = {**_LLAMA4_TEXT, "num_local_experts": experts, "interleave_moe_layer_step": step}
    return {"model_type": "llama4", "text_config": text, "vision_config": _LLAMA4_VISION, "tie_word_embeddings": False}


STARCODER = {
    "model_type": "gpt_bigcode",
    "architectures": ["GPTBigCodeForCausalLM"],
    **{"n_embd": 6144, "n_head": 48, "n_inner": 24576, "n_layer": 40, "n_positions": 8192, "vocab_size": 49152},
    **{"multi_query": True, "activation_function": "gelu", "attention_softmax_in_fp32": True, "inference_runner": 0},
    "validate_runner_input": True,
}
KIMI_K2 = {
    "model_type": "kimi_k2",
    "architectures": ["DeepseekV3ForCausalLM"],
    "auto_map": {"AutoConfig": "configuration_deepseek.DeepseekV3Config"},
    **{"hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61},
    **{"num_attention_heads": 64, "num_key_value_heads": 64, "n_shared_experts": 1, "n_routed_experts": 384},
    **{"kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128},
    **{"num_experts_per_tok": 8, "first_k_dense_replace": 1, "moe_layer_freq": 1, "n_group": 1, "topk_group": 1},
    **{"vocab_size": 163840, "max_position_embeddings": 131072, "tie_word_embeddings": False},
}
GEMMA3_4B = {
    "model_type": "gemma3",
    "architectures": ["Gemma3ForConditionalGeneration"],
    "text_config": {
        "model_type": "gemma3_text",
        **{"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024},
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
    },
    "vision_config": {
        "model_type": "siglip_vision_model",
        **{"hidden_size": 1152, "intermediate_size": 4304, "num_attention_heads": 16, "num_hidden_layers": 27},
        **{"image_size": 896, "patch_size": 14, "vision_use_head": False},
    },
}
LLAVA = {
    "model_type": "llava",
    "architectures": ["LlavaForConditionalGeneration"],
    "text_config": {
        **{"_name_or_path": "lmsys/vicuna-7b-v1.5", "architectures": ["LlamaForCausalLM"], "model_type": "llama"},
        **{"max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "torch_dtype": "float16", "vocab_size": 32064},
    },
    "vision_config": {
        "model_type": "clip_vision_model",
        **{"hidden_size": 1024, "image_size": 336, "intermediate_size": 4096, "num_attention_heads": 16},
        **{"num_hidden_layers": 24, "patch_size": 14, "projection_dim": 768, "vocab_size": 32000},
    },
    **{"vocab_size": 32064, "tie_word_embeddings": False, "projector_hidden_act": "gelu"},
}

QWEN_7B = {
    **{"model_type": "qwen", "architectures": ["QWenLMHeadModel"], "auto_map": {"AutoConfig": "c.QWenConfig"}},
    **{"hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32, "num_attention_heads": 32},
    **{"kv_channels": 128, "no_bias": True, "vocab_size": 151936, "seq_length": 8192, "tie_word_embeddings": False},
    **{"max_position_embeddings": 32768, "rotary_emb_base": 10000, "rotary_pct": 1.0, "use_flash_attn": "auto"},
    **{"use_dynamic_ntk": True, "use_logn_attn": True, "scale_attn_weights": True, "onnx_safe": None},
}
QWEN_1_8B = QWEN_7B | {"hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 24}
QWEN_1_8B |= {"num_attention_heads": 16}
CHATGLM3 = {
    **{"model_type": "chatglm", "architectures": ["ChatGLMModel"], "auto_map": {"AutoConfig": "c.ChatGLMConfig"}},
    **{"hidden_size": 4096, "ffn_hidden_size": 13696, "num_layers": 28, "num_attention_heads": 32, "kv_channels": 128},
    **{"multi_query_attention": True, "multi_query_group_num": 2, "padded_vocab_size": 65024, "seq_length": 8192},
    **{"add_bias_linear": False, "add_qkv_bias": True, "rmsnorm": True, "post_layer_norm": True},
    **{"apply_query_key_layer_scaling": True, "bias_dropout_fusion": True, "original_rope": True},
    **{"fp32_residual_connection": False, "layernorm_epsilon": 1e-5, "tie_word_embeddings": False},
}
# Models whose code is published beside their weights, with the parameters of those.
OWN_CODE: dict[str, tuple[dict[str, Any], int]] = {
    "Qwen 7B": (QWEN_7B, 7_721_324_544),
    "Qwen 1.8B": (QWEN_1_8B, 1_836_828_672),
    "ChatGLM3 6B": (CHATGLM3, 6_243_584_000),
    "GLM-4 9B": (CHATGLM3 | {"num_layers": 40, "padded_vocab_size": 151552}, 9_399_951_360),
}

PUBLISHED: dict[str, tuple[dict[str, Any], float]] = {
    "DBRX": (DBRX, 131.6e9),
    "Llama 4 Scout": (_llama4(16, 1), 107.8e9),
    "Llama 4 Maverick": (_llama4(128, 2), 400.7e9),
    "StarCoder": (STARCODER, 15.517e9),
    "Kimi K2": (KIMI_K2, 1026e9),
    "Gemma 3 4B": (GEMMA3_4B, 3.88e9),
    "LLaVA 1.5": (LLAVA, 6.74e9),
}
