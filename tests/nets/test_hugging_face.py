"""Models of transformers by their configuration, small or as they are, against transformers itself."""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import json

import pytest
import torch

from theodolite.errors import BadInput
from theodolite.nets.load import blueprint, load
from theodolite.nets.size import fit_budget
from theodolite.tasks import make_task
from theodolite.training.pairing import pair

transformers = pytest.importorskip("transformers")
CHECK = make_task("parity-check", {"longest": 8})


def written(folder, kind, model, **fields):
    config = getattr(transformers, f"{kind}Config")(**fields)
    config.architectures = [model]
    config.save_pretrained(folder)
    return f"hf:{folder}"


def test_a_configuration_is_built_small_with_all_that_depends_on_its_width(tmp_path):
    net = written(tmp_path / "llama", "Llama", "LlamaForCausalLM", num_key_value_heads=8)
    found = load(net, width=32, depth=2)
    config = found.module.config
    assert (config.hidden_size, config.num_hidden_layers, config.num_attention_heads) == (32, 2, 4)
    assert (config.num_key_value_heads, config.head_dim, config.intermediate_size) == (1, 8, 86)
    assert (found.name, found.kind, found.vocab, config.vocab_size) == ("hf:llama", "sequence", 8, 8)
    assert load(f"{net}/config.json", hidden_size=16, num_hidden_layers=1).module.config.hidden_size == 16
    with pytest.raises(BadInput, match=r"has 6,738,415,616 parameters at its own size: give --width and --depth"):
        load(written(tmp_path / "seven", "Llama", "LlamaForCausalLM"), vocab=32000)
    with pytest.raises(BadInput, match="no field is called 'widht'"):
        load(net, widht=3)


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("GPT2", "GPT2LMHeadModel"),
        ("Mamba", "MambaForCausalLM"),
        ("Mamba2", "Mamba2ForCausalLM"),
        ("Bert", "BertForMaskedLM"),
        ("Qwen3", "Qwen3ForCausalLM"),
    ],
)
def test_families_meet_a_task(tmp_path, kind, model):
    found = pair(written(tmp_path / kind, kind, model), CHECK, {"width": 16, "depth": 1}, longest=8)
    assert found.read_as == ("the first 2 entries are read of its outputs",)
    assert sum(p.numel() for p in found.build(0).parameters()) < 60_000


def test_a_model_as_it_is_gives_the_numbers_that_transformers_gives(tmp_path):
    fields = {"bos_token_id": None, "eos_token_id": None}
    config = transformers.GPT2Config(vocab_size=20, n_positions=64, n_embd=16, n_layer=1, n_head=2, **fields)
    theirs = transformers.GPT2LMHeadModel(config).eval()
    theirs.save_pretrained(tmp_path / "own")
    net = f"hf:{tmp_path / 'own'}"
    found = pair(net, CHECK, longest=8)
    ids = torch.randint(3, (2, 5))
    assert torch.allclose(found.build(0).eval()(ids), theirs(ids).logits[..., :2], atol=1e-6)
    assert found.assumed == ("as it is, with its weights",)
    assert blueprint(net).vocab == 20
    with pytest.raises(BadInput, match="knows 20 symbols, not 30"):
        load(net, vocab=30)
    before = blueprint(net).code
    with torch.no_grad():
        theirs.transformer.wte.weight[0, 0] += 1
    theirs.save_pretrained(tmp_path / "own")
    assert blueprint(net).code != before, "weights belong to what the net is"
    assert load(net, width=8).module.config.n_embd == 8, "another shape is built anew"


def test_a_budget_chooses_the_width_with_its_heads(tmp_path):
    net = written(tmp_path / "gpt2", "GPT2", "GPT2LMHeadModel", n_head=4, n_positions=32)
    shape = fit_budget(net, 20_000, vocab=4, tokens=8, depth=1)
    count = sum(p.numel() for p in load(net, **shape).module.parameters())
    assert count == pytest.approx(20_000, rel=0.3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "there is no configuration"),
        ("no JSON", "is no JSON"),
        (json.dumps({"hidden_size": 4}), "has no 'model_type'"),
        (json.dumps({"model_type": "nobody-knows"}), "does not know the model type 'nobody-knows'"),
    ],
)
def test_what_is_no_model_is_said_in_a_sentence(tmp_path, text, words):
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(BadInput, match=words) as told:
        load(f"hf:{tmp_path}")
    assert "\n" not in str(told.value)
