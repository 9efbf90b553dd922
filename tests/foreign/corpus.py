"""Which networks there are, how their authors call them, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from torch import Tensor, nn

HERE = Path(__file__).parent
Call = Callable[[nn.Module, Tensor], Any]


def plainly(module: nn.Module, x: Tensor) -> Any:
    return module(x)


def first(module: nn.Module, x: Tensor) -> Any:
    return module(x)[0]


def tokens_first(module: nn.Module, x: Tensor) -> Any:
    return module(x.transpose(0, 1)).transpose(0, 1)


@dataclass(frozen=True)
class Foreign:
    """`call`: the author's way to (batch, token, output). `state`: how many numbers of the past it carries, "grows", or
    None where that is not known. `causal`: an output sees nothing of what comes later. `alike`: what leaves it alone,
    "time-shift" where zeros put before the input only delay its outputs (biases 0), "permutation" of the tokens.
    `reach`: how many tokens back an output sees, where there is an end. `leaks`: an answer depends on earlier calls."""

    name: str
    reads: Literal["ids", "numbers"]
    call: Call = plainly
    kind: Literal["sequence", "vector"] = "sequence"
    args: Mapping[str, Any] = field(default_factory=dict)
    causal: bool = True
    state: int | str | None = None
    alike: tuple[str, ...] = ()
    reach: int | None = None
    leaks: bool = False
    pooled: bool = False

    @property
    def net(self) -> str:
        file, _, name = self.name.partition(":")
        return f"{HERE / file}.py:{name}"


def _word_language(module: Any, x: Tensor) -> Tensor:
    return module(x.T, module.init_hidden(x.shape[0]))[0].transpose(0, 1)


STEPS = ("time-shift",)
CORPUS = (
    Foreign("recurrent:GRUTagger", "ids", tokens_first, args={"hidden_dim": 16}, state=16, alike=STEPS),
    Foreign("recurrent:WordLanguageRNN", "ids", _word_language, args={"nhid": 12, "nlayers": 1}, state=24, alike=STEPS),
    Foreign("recurrent:CharRNN", "numbers", first, args={"hidden_size": 16}, state=16, alike=STEPS),
    Foreign("recurrent:BiLSTM", "numbers", causal=False, alike=STEPS),
    Foreign("recurrent:MinGRU", "ids", lambda m, x: m(x)["logits"], args={"dim": 16}, state=16, alike=STEPS),
    Foreign("recurrent:FixedLSTM", "numbers", state=48, alike=STEPS),
    Foreign("recurrent:KeptState", "ids", state=24, alike=STEPS),
    Foreign("attention:MinGPT", "ids", first, state="grows"),
    Foreign("attention:NanoGPT", "ids", first, state="grows"),
    Foreign("attention:LlamaStyle", "ids", lambda m, x: m(x, 0), state="grows"),
    Foreign("attention:TransformerModel", "ids", tokens_first, state="grows"),
    Foreign("attention:ALiBi", "numbers", state="grows"),
    Foreign("attention:LinearAttention", "ids", args={"dim": 4}, state=20),
    Foreign("attention:SlidingWindow", "ids", args={"d_model": 8}, state=24, reach=3),
    Foreign("attention:EncoderClassifier", "ids", causal=False, alike=("translation", "permutation")),
    Foreign("state_space:S4D", "numbers", args={"d_model": 4}, state=32, alike=STEPS),
    Foreign("state_space:RWKV", "ids", args={"n_embd": 8}),
    Foreign("state_space:RetNet", "ids", args={"hidden_size": 8, "heads": 2}, state=2 * 4 * 3, alike=STEPS),
    Foreign("state_space:Mamba", "numbers", alike=STEPS),
    Foreign("state_space:HGRN", "numbers", args={"channels": 16}, state=16, alike=STEPS),
    Foreign("state_space:Hyena", "ids", alike=STEPS),
    Foreign("unusual:BatchNormNet", "numbers", kind="vector"),
    Foreign("unusual:TemporalConvNet", "numbers", alike=STEPS, reach=6),
    Foreign("unusual:RunningMean", "ids", state=24, leaks=True),
    Foreign("unusual:StraightThrough", "numbers", alike=STEPS),
    Foreign("unusual:AdaptiveDepth", "ids", alike=STEPS),
    Foreign("unusual:MixtureOfExperts", "ids", lambda m, x: m(x)[1], alike=STEPS),
    Foreign("unusual:Frozen", "numbers", args={"reservoir": 16}, state=16, alike=STEPS),
    Foreign("unusual:WeightTied", "ids"),
    Foreign("unusual:PooledClassifier", "ids", pooled=True, alike=("translation", "permutation")),
    Foreign("unusual:Fourier", "numbers", kind="vector"),
    Foreign("unusual:build_model", "ids", state=24, alike=STEPS),
)


HUGGING_FACE = {
    "GPT2": "GPT2LMHeadModel",
    "Llama": "LlamaForCausalLM",
    "Mamba": "MambaForCausalLM",
    "GPTNeoX": "GPTNeoXForCausalLM",
    "Bert": "BertForMaskedLM",
    "Rwkv": "RwkvForCausalLM",
}


def hugging_face(folder: Path) -> list[Foreign]:
    """Families of transformers by their configurations, written into a folder; none where it is not installed."""
    try:
        import transformers
    except ImportError:
        return []
    found = []
    for kind, model in HUGGING_FACE.items():
        if not hasattr(transformers, model):
            continue
        config = getattr(transformers, f"{kind}Config")()
        config.architectures = [model]
        config.save_pretrained(folder / kind)
        call = lambda module, x: module(x).logits
        known: dict[str, Any] = {"alike": STEPS} if kind == "Mamba" else {}
        found.append(
            _Built(f"hf:{folder / kind}", "ids", call, args={"width": 16, "depth": 2}, causal=kind != "Bert", **known)
        )
    return found


class _Built(Foreign):
    @property
    def net(self) -> str:
        return self.name


def theirs(module: nn.Module) -> nn.Module:
    """The module as its author has it: without what stands around its call here."""
    module._forward_hooks.clear()
    module._forward_pre_hooks.clear()
    module._forward_pre_hooks_with_kwargs.clear()
    return module
