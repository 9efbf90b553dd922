"""`hf:FOLDER` or `hf:config.json`: a model of `transformers`, small and fresh by its configuration, or as it is.

Nothing is fetched and no code of the folder is run. A folder with weights and no other shape is the model as it is;
else its configuration is built anew, with width, depth and heads as they are given and a vocabulary for the task.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import nn

from theodolite.errors import BadInput
from theodolite.files import json_fault, refuse_endless
from theodolite.nets.blueprint import Blueprint
from theodolite.nets.calling import Calling
from theodolite.nets.own_net import SIZES, meaning
from theodolite.registry import unknown

PREFIX = "hf:"
_LARGEST = 1 << 31  # parameters that are built without being asked for a smaller shape
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
_WITH_WIDTH = (
    "intermediate_size",
    "ffn_hidden_size",
    "n_inner",
    "d_ff",
    "ffn_dim",
    "time_step_rank",
    "attention_hidden_size",
)
_KEY_HEADS = ("num_key_value_heads", "n_kv_heads", "num_kv_heads")
_MARKS = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "cls_token_id", "sep_token_id")


def is_hugging_face(net: str) -> bool:
    return net.startswith(PREFIX)


def absolute(net: str) -> str:
    """The same model, wherever the command runs."""
    return f"{PREFIX}{Path(net.removeprefix(PREFIX)).resolve()}"


def hugging_face_blueprint(net: str, given: Mapping[str, Any]) -> Blueprint:
    found = _read(net)
    chosen, sizes = _resolved(found, given)
    kept = found.weights and not chosen
    held = int(found.config.get("vocab_size", 0) or 0)
    tokens = int(sizes.get("tokens", SIZES["tokens"]))
    vocab = int(sizes.get("vocab", held if kept else SIZES["vocab"]))
    told = []
    if kept:
        told.append("as it is, with its weights")
        if vocab > held:
            raise BadInput(f"'{net}' knows {held} symbols, not {vocab}: choose a task with fewer, or give --width")
    else:
        least = max(vocab, int(sizes.get("outputs", 0)))
        chosen = {**_small(found.config, chosen, tokens), "vocab_size": least}
        told += [f"built anew with {', '.join(f'{k}={v}' for k, v in chosen.items())}"]
    shape = {k: v for k, v in chosen.items() if k != "vocab_size" and k in found.config}
    arguments = {} if kept else chosen
    return Blueprint(
        name=found.name,
        factory=_weighted(found) if kept else _fresh(found),
        arguments=arguments,
        known={} if kept else {name: found.config[name] for name in found.config if meaning(name) != "vocab"},
        kind="sequence",
        shape={**shape, "tokens": tokens, "vocab": vocab},
        vocab=vocab,
        source=found.digest,
        code=found.digest,
        built=bool(kept),
        calling=Calling(),
        assumed=tuple(told),
    )


@dataclass(frozen=True)
class _Source:
    name: str
    folder: Path
    config: Mapping[str, Any]
    weights: bool
    digest: str


def _read(net: str) -> _Source:
    path = Path(net.removeprefix(PREFIX))
    file = path / "config.json" if path.is_dir() else path
    refuse_endless(file)
    try:
        text = file.read_bytes()
        config = json.loads(
            text, object_hook=lambda entry: float(entry["__float__"]) if "__float__" in entry else entry
        )
    except OSError:
        raise BadInput(f"there is no configuration '{file}': give hf:FOLDER or hf:config.json") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise BadInput(f"'{file}' is no JSON ({json_fault(error)}): give the config.json of a model") from None
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise BadInput(f"'{file}' has no 'model_type': give the config.json of a Hugging Face model")
    held = sorted(one for one in _WEIGHTS if (path / one).is_file()) if path.is_dir() else []
    files = sorted({*(path / one for one in held), *(path.glob("*.safetensors") if held else ())})
    digest = hashlib.sha256(text)
    for one in files:
        digest.update(_file_hash(str(one.resolve()), one.stat().st_mtime_ns).encode())
    digest.update(_version().encode())
    name = path.name if path.is_dir() else (path.parent.name if path.name == "config.json" else path.stem)
    return _Source(f"{PREFIX}{name or config['model_type']}", path, config, bool(held), digest.hexdigest())


@lru_cache(maxsize=64)
def _file_hash(path: str, _changed: int) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _version() -> str:
    try:
        return metadata.version("transformers")
    except metadata.PackageNotFoundError:
        raise BadInput("models of Hugging Face need transformers: pip install 'theodolite[hf]'") from None


def _library() -> Any:
    _version()
    return importlib.import_module("transformers")


@contextmanager
def _quietly(transformers: Any) -> Iterator[None]:
    """Without its bars and advice on speed, which are put back after."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _resolved(found: _Source, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields of the configuration by its own names; and the sizes of a task. A size by the configuration's name is the
    user's: it makes a model anew."""
    chosen: dict[str, Any] = {}
    sizes: dict[str, Any] = {}
    for key, value in given.items():
        own = [key] if key in found.config else [n for n in found.config if meaning(n) == meaning(key)][:1]
        if meaning(key) in SIZES and (key not in found.config or meaning(key) == "vocab"):
            sizes[meaning(key)] = value
        elif own:
            chosen[own[0]] = value
        elif key in ("width", "depth", "heads"):
            raise BadInput(f"the configuration of '{found.name}' states no {key}: set its own field by --arg")
        else:
            raise BadInput(f"for the net '{found.name}': {unknown('field', key, found.config)}")
    return chosen, sizes


def _small(config: Mapping[str, Any], chosen: Mapping[str, Any], tokens: int) -> dict[str, Any]:
    """What follows from the fields that were chosen: sizes in proportion, heads that divide, room for the tokens."""
    fields = dict(chosen)
    own = lambda size: next((n for n in config if meaning(n) == size and type(config[n]) is int), None)
    wide, heads, deep, places = own("width"), own("heads"), own("depth"), own("tokens")
    if wide in chosen or heads in chosen:
        width = int(chosen.get(wide, config[wide])) if wide else 0
        scale = width / config[wide] if wide else 1.0
        if heads is not None and type(config.get("expand")) is int and type(config.get("head_dim")) is int:
            inner = config["expand"] * width  # of a state space, whose heads share the inner width
            size = max(n for n in range(1, config["head_dim"] + 1) if inner % n == 0)
            fields |= {"head_dim": size, heads: inner // size}
            if type(config.get("n_groups")) is int:
                fields["n_groups"] = math.gcd(config["n_groups"], inner // size)
        elif heads is not None:
            count = int(chosen.get(heads) or _heads(width, config[heads]))
            fields[heads] = count
            for name in _KEY_HEADS:
                if type(config.get(name)) is int and name not in chosen:
                    most = max(1, round(config[name] * count / config[heads]))
                    fields[name] = max(n for n in range(1, most + 1) if count % n == 0)
            if type(config.get("head_dim")) is int and "head_dim" not in chosen:
                fields["head_dim"] = max(1, width // count)
        for name in _WITH_WIDTH:
            if type(config.get(name)) is int and name not in chosen and scale != 1.0:
                fields[name] = max(1, round(config[name] * scale))
    if deep in chosen and isinstance(kinds := config.get("layer_types"), list) and kinds:
        count = int(chosen[str(deep)])
        fields["layer_types"] = (kinds * -(-count // len(kinds)))[:count]
    if places is not None and places not in chosen and config[places] < tokens:
        fields[places] = tokens
    return fields


def _heads(width: int, most: int) -> int:
    """As many heads as there were, or the next smaller number that leaves each 8 entries or more, an even number."""
    fitting = [n for n in range(1, most + 1) if width % n == 0 and (width // n) % 2 == 0 and width // n >= 8]
    return max(fitting, default=1)


def _fresh(found: _Source) -> Callable[..., nn.Module]:
    def build(**fields: Any) -> nn.Module:
        transformers = _library()
        fields = {"vocab_size" if name == "vocab" else name: value for name, value in fields.items()}
        fields = _small(found.config, fields, int(fields.pop("tokens", 0)))
        wanted = {k: v for k, v in {**found.config, **fields}.items() if k not in ("auto_map", "torch_dtype", "dtype")}
        wanted |= dict.fromkeys(_MARKS)  # no symbol of a task is padding, whose embedding would stay 0
        config = _configuration(found, wanted)
        if torch.get_default_device().type != "meta" and not fields.keys() - {"vocab_size"}:
            with torch.device("meta"):
                _refuse_huge(found, transformers, config)
        with _quietly(transformers):
            return _model(found, transformers, config)

    return build


def _configuration(found: _Source, wanted: Mapping[str, Any]) -> Any:
    kind = found.config["model_type"]
    try:
        return _library().AutoConfig.for_model(kind, **{k: v for k, v in wanted.items() if k != "model_type"})
    except ValueError as error:
        known = "this transformers does not know the model type" if "nrecognized" in str(error) else "it is refused"
        raise BadInput(f"'{found.name}' cannot be built, {known} '{kind}': {str(error).splitlines()[0]}") from error


def _model(found: _Source, transformers: Any, config: Any) -> nn.Module:
    """By the class that the configuration names, else as a causal language model."""
    config.use_cache = False
    config._attn_implementation = "eager"
    named = next(iter(found.config.get("architectures") or ()), "")
    kind = getattr(transformers, named, None)
    made = transformers.AutoModelForCausalLM.from_config(config) if kind is None else kind(config)
    return made.float() if torch.get_default_device().type != "meta" else made


def _refuse_huge(found: _Source, transformers: Any, config: Any) -> None:
    count = sum(parameter.numel() for parameter in _model(found, transformers, config).parameters())
    if count > _LARGEST:
        raise BadInput(f"'{found.name}' has {count:,} parameters at its own size: give --width and --depth")


def _weighted(found: _Source) -> Callable[..., nn.Module]:
    def build() -> nn.Module:
        transformers = _library()
        named = next(iter(found.config.get("architectures") or ()), "")
        kind = getattr(transformers, named, transformers.AutoModelForCausalLM)
        with _quietly(transformers):
            made = kind.from_pretrained(
                str(found.folder), local_files_only=True, attn_implementation="eager", dtype=torch.float32
            )
        made.config.use_cache = False
        return made

    return build
