"""`theodolite advise`: light and fast, one document, one decision, files only where they were asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

GPT2 = {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12}

T5_11B = {
    "model_type": "t5",
    **{"d_model": 1024, "d_kv": 128, "d_ff": 65536, "num_layers": 24, "num_heads": 128, "vocab_size": 32128},
}
ALBERT = {
    "model_type": "albert",
    **{"hidden_size": 4096, "embedding_size": 128, "num_hidden_layers": 12, "num_attention_heads": 64},
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "given" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(GPT2), encoding="utf-8")
    return path


@pytest.mark.parametrize("extra", [["--json"], ["--plot", "plane.svg"]])
def test_it_runs_without_torch(config, tmp_path, extra):
    """How long it takes is measured by benchmarks/commands.py. With `--out` the model is built."""
    code = (
        "import sys\n"
        "sys.argv = ['theodolite', *sys.argv[1:]]\n"
        "from theodolite.cli.main import run\n"
        "try:\n    run()\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'numpy', 'jaxtyping', 'scipy'} & set(sys.modules)\n"
        "print('HEAVY', sorted(heavy), file=sys.stderr)\n"
    )
    words = [sys.executable, "-c", code, "advise", str(config), *extra]
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ, cwd=tmp_path, check=True)
    assert done.stderr.strip() == "HEAVY []"
    assert done.stdout


def test_the_first_line_is_the_decision_and_nothing_is_wider_than_80_columns(theodolite, config, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    outcome = theodolite("advise", config)
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0].startswith("12 layers of width 768: no reason to change.")
    assert max(map(len, lines)) <= 80
    for word in ("parameters", "124,439,808", "Bottlenecks: none found", "The same budget at other depths", "cap"):
        assert word in outcome.out


def test_a_budget_is_advised_in_words_and_as_json(theodolite, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = theodolite("advise", "--params", "1.3e9", "--vocab", 50257)
    assert shown.out.startswith("For 1.3B parameters the published fit advises 40 to 43 layers")
    found = json.loads(theodolite("advise", "--params", "1.3B", "--vocab", 50257, "--json").out)
    assert found["recommended"]["depth_low"] == 40
    assert found["recommended"]["depth_high"] == 43
    assert found["extrapolated"] is False


def test_bytes_and_ranks_show_their_bottleneck(theodolite, config):
    assert "vocabulary" in theodolite("advise", "--params", "300M", "--modality", "bytes").out
    assert "embedding-rank" in theodolite("advise", config, "--embedding-rank", 64).out


def test_both_stacks_of_an_encoder_decoder_are_shown(theodolite, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / "config.json"
    path.write_text(json.dumps(T5_11B), encoding="utf-8")
    shown = theodolite("advise", path).out
    assert shown.startswith("24 + 24 layers of width 1024: no reason to change. They are deeper")
    rows = {line[:24].strip(): line[24:].split() for line in shown.splitlines()}
    assert rows["layers"][:3] == ["24", "+", "24"]
    assert rows["used by one token"][0] == "5,670,122,496"
    assert "mean of both" in shown.replace("\n", " ")
    told = " ".join(shown.split())
    assert "32% of the blocks' parameters lie beyond the cap." in told
    assert told.count("Gone in the advised shape.") == 1
    assert max(map(len, shown.splitlines())) <= 80


def test_a_bottleneck_that_stays_is_said_to_stay_and_none_is_called_waste(theodolite, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(ALBERT), encoding="utf-8")
    told = " ".join(theodolite("advise", path).out.split())
    assert "Still there in the advised shape." in told
    assert "25% of ALBERT" in told
    assert "99." not in told
    assert "of the blocks' parameters lie" not in told


def test_few_symbols_are_told_of_depth_and_of_no_waste(theodolite, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**GPT2, "vocab_size": 33, "n_layer": 33}), encoding="utf-8")  # as many as ESM-2 has
    told = " ".join(theodolite("advise", path).out.split())
    assert "the inputs have rank r = 33" in told
    assert "no measure of waste" in told
    assert "Vocabulary: " not in told  # the published fit is of words
    assert "% of the blocks" not in told


def test_a_refuted_bound_is_called_so_and_ours_stands_beside_it(theodolite, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**GPT2, "n_layer": 48}), encoding="utf-8")
    shown = theodolite("advise", path).out
    rows = {line[:24].strip(): line[24:].split() for line in shown.splitlines()}
    assert rows["log3 sep ≤, published"][0] == "refuted"
    told = " ".join(shown.split())
    assert "does not hold: these heads have more, proven" in told
    assert "to leading order theory prefers no shape" in told
    assert "only a few percent over a wide range of shapes" in told
    assert "loses less than one layer's worth" in told


def test_a_bound_refuted_for_one_head_only_stands_and_says_so(theodolite, tmp_path):
    """GPT-2 has 12 layers and 12 heads of width 64: proven for one head of width 768 from 12 layers on, for 12 heads
    from 14."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(GPT2), encoding="utf-8")
    shown = theodolite("advise", path).out
    rows = {line[:24].strip(): line[24:].split() for line in shown.splitlines()}
    assert rows["log3 sep ≤, published"][0] != "refuted"
    told = " ".join(shown.split())
    assert "refuted for one head of full width, not for these heads" in told
    assert "it is false from 14 layers on" in told


def test_the_advised_config_is_written_only_where_asked(theodolite, config, tmp_path):
    before = config.read_text(encoding="utf-8")
    found = json.loads(theodolite("advise", config, "--out", tmp_path / "new", "--json").out)
    written = json.loads((tmp_path / "new" / "config.json").read_text(encoding="utf-8"))
    assert found["written"]["config"] == str(tmp_path / "new" / "config.json")
    assert written == found["config"]
    assert written["n_layer"] == found["recommended"]["depth"]
    assert written["n_embd"] == found["recommended"]["width"]
    assert config.read_text(encoding="utf-8") == before
    again = theodolite("advise", tmp_path / "new", "--json")
    assert json.loads(again.out)["regime"]["against_fit"] == "agrees"
    assert theodolite("advise", config, "--out", tmp_path / "new").code == 0  # the same content


def test_another_configuration_is_never_overwritten(theodolite, config, tmp_path):
    before = config.read_text(encoding="utf-8")
    outcome = theodolite("advise", config, "--out", config.parent)
    assert outcome.code == 2
    assert "choose another --out" in outcome.err
    assert config.read_text(encoding="utf-8") == before
    (tmp_path / "file").write_text("x")
    assert theodolite("advise", config, "--out", tmp_path / "file").code == 2


def test_measure_says_what_was_measured(theodolite, config, monkeypatch):
    monkeypatch.setattr("theodolite.advice.measure._SECONDS", 0.01)
    outcome = theodolite("advise", config, "--measure", "--context", 4, "--threads", 1)
    assert "Measured, given" in outcome.out
    assert "tokens/s" in outcome.out
    assert "on cpu in float32" in outcome.out.replace("\n", " ")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{not json", "not JSON"),
        ("[1]", "object"),
        ('{"model_type": "gpt2"}', "does not state"),
        (json.dumps({**GPT2, "n_head": 5}), "divide"),
        (json.dumps({**GPT2, "n_layer": -1}), "positive"),
        (json.dumps({**GPT2, "n_layer": True}), "positive"),
    ],
)
def test_a_bad_configuration_is_one_sentence(theodolite, tmp_path, content, sentence):
    path = tmp_path / "config.json"
    path.write_text(content, encoding="utf-8")
    outcome = theodolite("advise", path)
    assert outcome.code == 2
    assert sentence in outcome.err
    assert outcome.err.count("\n") == 1
    assert outcome.out == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "or both"),
        (["--params", "1e9"], "--vocab"),
        (["--params", "-3", "--vocab", "9"], "negative"),
        (["--params", "100", "--vocab", "9"], "absurd"),
        (["--params", "2e15", "--vocab", "9"], "absurd"),
        (["--params", "lots", "--vocab", "9"], "not a number"),
        (["--params", "20k", "--vocab", "50257"], "smaller vocabulary"),
        (["--params", "1e9", "--vocab", "0"], "vocabulary"),
        (["--params", "1e9", "--vocab", "9", "--modality", "sound"], "language, image, bytes"),
        (["--params", "1e9", "--vocab", "9", "--embedding-rank", "0"], "embedding rank"),
        (["--params", "1e9", "--vocab", "9", "--plot", "plane.png"], ".svg nor .html"),
        (["--params", "1e9", "--vocab", "9", "--plot", "no/such/folder/plane.svg"], "is not there"),
        (["--params", "1e9", "--vocab", "9", "--measure", "--device", "nowhere"], "no device"),
        (["no/such/config.json"], "no file"),
    ],
)
def test_bad_arguments_are_one_sentence(theodolite, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    outcome = theodolite("advise", *arguments)
    assert outcome.code == 2
    assert sentence in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_configuration_and_a_budget_are_its_family_at_that_size(theodolite, config):
    found = json.loads(theodolite("advise", config, "--params", "1e9", "--json").out)
    assert found["given"] is None
    assert found["recommended"]["params"] == pytest.approx(1e9, rel=0.05)
    assert found["config"]["model_type"] == "gpt2"
    assert found["vocab"] == 50257
    assert any("stay" in warning for warning in found["warnings"])
    small = json.loads(theodolite("advise", config, "--params", "1e9", "--vocab", 4096, "--json").out)
    assert small["vocab"] == 4096


@pytest.mark.parametrize("text", ["7B", "7,000,000,000", "7e9", "0.007T"])
def test_sizes_are_read_as_people_write_them(theodolite, text):
    found = json.loads(theodolite("advise", "--params", text, "--like", "llama", "--json").out)
    assert found["schema"] == 1
    assert found["budget"] == 7 * 10**9


def test_several_configurations_are_one_table(theodolite, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for name, content in (("a.json", GPT2), ("b.json", T5_11B)):
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    files = (tmp_path / "a.json", tmp_path / "b.json")
    shown = theodolite("advise", *files)
    rows = [line.split() for line in shown.out.splitlines()]
    assert rows[1][:6] == ["a.json", "124M", "12", "768", "12/12", "deeper"]
    assert rows[2][:7] == ["b.json", "11.3B", "24", "+", "24", "1024", "128/128"]
    assert max(map(len, shown.out.splitlines())) <= 80
    found = json.loads(theodolite("advise", *files, "--json").out)
    alone = json.loads(theodolite("advise", files[0], "--json").out)
    for key in ("written", "not_carried_over"):
        alone.pop(key)
    assert found["schema"] == 1
    assert found["configurations"][0] == alone
    refused = theodolite("advise", *files, "--out", tmp_path / "new")
    assert refused.code == 2
    assert "one configuration" in refused.err


def test_one_bad_file_has_its_sentence_in_its_row_and_the_others_are_shown(theodolite, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    good, binary, missing = (tmp_path / name for name in ("good.json", "binary.json", "missing.json"))
    good.write_text(json.dumps(GPT2), encoding="utf-8")
    binary.write_bytes(bytes(range(128, 256)))
    shown = theodolite("advise", good, binary, missing, good)
    assert shown.code == 2
    assert shown.out.count("124M") == 2
    words = " ".join(shown.out.split())  # where lines end depends on the folder's name
    assert "binary.json" in words
    assert "is not JSON" in words
    assert "there is no file" in words
    asked = theodolite("advise", good, missing, "--json")
    assert asked.code == 2
    first, second = json.loads(asked.out)["configurations"]
    assert first["params"] == 124439808
    assert second["name"] == str(missing)
    assert second["error"]["kind"] == "BadInput"
    assert second["error"]["exit_code"] == 2
    assert "there is no file" in second["error"]["message"]
    checked = theodolite("advise", good, missing, "--check", "--tp", 8, "--json")
    assert checked.code == 2  # a file that cannot be read weighs more than a rule that is broken
    one, two = json.loads(checked.out)["checks"]
    assert one["broken"][0]["rule"] == "heads-divide-tp"
    assert two["error"] == second["error"]
    assert "missing.json: error: there is no file" in theodolite("advise", good, missing, "--check").out


def test_an_option_that_is_wrong_for_all_configurations_is_one_error(theodolite, config):
    refused = theodolite("advise", config, config, "--context", 0)
    assert refused.code == 2
    assert not refused.out
    assert refused.err.startswith("error: the context is 0")


def test_check_ends_with_1_where_a_rule_is_broken_and_with_0_where_it_is_ignored(theodolite, config):
    assert theodolite("advise", config, "--check").code == 0
    broken = theodolite("advise", config, "--check", "--tp", 8)
    assert broken.code == 1
    assert "heads-divide-tp" in broken.out
    rules = ("heads-divide-tp", "kv-heads-divide-tp", "vocab-multiple")
    found = theodolite("advise", config, "--check", "--tp", 8, "--json")
    assert found.code == 1
    document = json.loads(found.out)
    assert document["schema"] == 1
    assert tuple(one["rule"] for one in document["checks"][0]["broken"]) == rules
    ignored = [word for rule in rules for word in ("--ignore", rule)]
    assert theodolite("advise", config, "--check", "--tp", 8, *ignored).code == 0


@pytest.mark.parametrize("form", ["megatron", "torchtitan", "nanotron", "litgpt"])
def test_an_export_is_written_beside_the_configuration_and_reads_back(theodolite, tmp_path, form):
    from theodolite.advice.exports.export import FORMATS

    words = ("--params", "8B", "--like", "llama", "--tp", 2, "--pp", 2, "--multiple-of", 64)
    outcome = theodolite("advise", *words, "--export", form, "--out", tmp_path / "new", "--json")
    found = json.loads(outcome.out)
    text = (tmp_path / "new" / FORMATS[form].file).read_text(encoding="utf-8")
    assert found["written"]["export"].endswith(FORMATS[form].file)
    assert (tmp_path / "new" / "config.json").is_file()
    assert FORMATS[form].read(text).shape("x").params == found["recommended"]["params"]


def test_the_given_shape_is_exported_where_that_is_asked_for(theodolite, config, tmp_path):
    outcome = theodolite("advise", config, "--export", "megatron", "--given", "--out", tmp_path / "new")
    assert outcome.code == 0
    assert "--num-layers 12\n" in (tmp_path / "new" / "megatron.sh").read_text(encoding="utf-8")
    assert not (tmp_path / "new" / "config.json").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--check", "--params", "1e9"], "--check goes with configurations"),
        (["--check"], "--check goes with configurations"),
        (["--ignore", "vocab-multiple", "--params", "1e9"], "--ignore goes with --check"),
        (["--params", "8B", "--like", "gpt"], "llama, qwen3, moe"),
        (["--params", "8B", "--like", "llama", "--modality", "image"], "language models"),
        (["--params", "8B", "--like", "llama", "--export", "gguf", "--out", "x"], "megatron, torchtitan"),
        (["--params", "8B", "--like", "llama", "--export", "litgpt"], "needs a folder"),
        (["--params", "8B", "--like", "llama", "--given"], "--given goes with"),
        (["--params", "8B", "--like", "llama", "--tp", "0"], "--tp is 0"),
        (["--params", "8B", "--like", "llama", "--tp", "4096"], "heads-divide-tp"),
        (["--params", "8B", "--like", "llama", "--pp", "4096"], "depth-divides-pp"),
        (
            ["--params", "1B", "--vocab", "50257", "--export", "nanotron", "--out", "x"],
            "nanotron's Llama has no biases",
        ),
        (["nobody/no-such-model"], "local Hugging Face cache"),
        (["https://huggingface.co/nobody/no-such-model"], "nothing is downloaded"),
        (["https://huggingface.co/datasets/nobody/x"], "not a model's page"),
        (["https://example.org/config.json"], "not a model's page on huggingface.co"),
    ],
)
def test_bad_wishes_of_a_team_are_one_sentence(theodolite, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    outcome = theodolite("advise", *arguments)
    assert outcome.code == 2
    assert sentence in outcome.err
    assert outcome.err.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_nothing_is_written_unless_all_of_it_can_be(theodolite, config, tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "megatron.sh").write_text("mine")
    outcome = theodolite("advise", config, "--export", "megatron", "--out", tmp_path / "new")
    assert outcome.code == 2
    assert "choose another --out" in outcome.err
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["megatron.sh"]
    assert theodolite("advise", config, "--params", "1B", "--given", "--export", "megatron", "--out", "x").code == 2


def test_check_names_the_rules_there_are(theodolite, config):
    outcome = theodolite("advise", config, "--check", "--ignore", "no-such-rule")
    assert outcome.code == 2
    assert "count-mismatch" in outcome.err


def test_a_training_budget_is_shown_in_80_columns_and_as_json(theodolite, config, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    given = ["advise", config, "--tokens", "2T", "--gpu", "h100", "--gpus", 8, "--batch", 16, "--zero", 1]
    shown = theodolite(*given).out
    assert max(map(len, shown.splitlines())) <= 80
    told = " ".join(shown.split())
    for words in (
        "Budget: 2T tokens = ",
        "on h100 at 40% of its peak",
        "times Chinchilla's 20. In use: Llama 3 8B 1,875.",
        "Best size by Besiroglu et al. 2024",
        "this model",
        "Memory of training: weights 249MB",
        "and fits on h100 (80 GB).",
        "Memory of inference: weights 249MB",
    ):
        assert words in told
    found = json.loads(theodolite(*given, "--json").out)["plan"]
    assert found["budget"]["tokens"] == 2e12
    assert found["setting"]["gpus"] == 8
    assert found["fits"] is True


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        (["--gpu", "h10"], "there is no GPU 'h10' in the table, did you mean 'h100'"),
        (["--gpu", "h100", "--mfu", "40"], "--mfu 40.0 is not a share of the peak"),
        (["--tokens", "2T", "--flops", "1e24"], "each follows from the other: give one of them"),
        (["--batch", "0"], "--batch is 0: pass an integer of at least 1"),
        (["--zero", "5", "--gpus", "8"], "there is no ZeRO stage 5"),
        (["--bits", "3"], "weights of 3 bits are not in use"),
        (["--tp", "4", "--gpus", "6"], "6 GPUs are not whole replicas of 4 × 1"),
        (["--gpu", "h100", "--check"], "--check goes with configurations, without --gpu"),
    ],
)
def test_a_budget_that_cannot_be(theodolite, config, extra, told):
    outcome = theodolite("advise", config, *extra)
    assert outcome.code == 2
    assert told in outcome.err
