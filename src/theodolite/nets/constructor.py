"""What builds a user's net, as one flat list of arguments: of its constructor, of those it hands `**kwargs` on to, and
of the configuration object it takes."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, get_type_hints

from theodolite.errors import BadInput

REQUIRED = inspect.Parameter.empty
_CONFIG = {"config", "cfg", "conf", "configuration", "args", "params", "hparams", "opt", "options", "settings"}
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class Constructor:
    """`arguments`: by name, the default or REQUIRED. `any_name`: it takes others too. `config`: the parameter that is
    an object which holds the `inner` arguments, and what makes it of them."""

    build: Callable[..., Any]
    arguments: Mapping[str, Any]
    any_name: bool = False
    config: str | None = None
    inner: frozenset[str] = frozenset()
    make_config: Callable[..., Any] | None = None
    form: str = ""  # of the configuration, in words

    def __call__(self, **given: Any) -> Any:
        if self.config is None or self.make_config is None:
            return self.build(**given)
        own = {name: value for name, value in given.items() if name not in self.inner}
        held = {name: value for name, value in given.items() if name in self.inner}
        return self.build(**{self.config: self.make_config(**held)}, **own)


def constructor(net: Callable[..., Any], name: str) -> Constructor:
    """Of a class or a function."""
    try:
        signature = inspect.signature(net).parameters
    except (TypeError, ValueError):
        raise BadInput(f"the arguments of '{name}' cannot be read: pass a class or function of Python") from None
    known = {k: p.default for k, p in signature.items() if p.kind in _NAMED}
    kwargs = next((k for k, p in signature.items() if p.kind is inspect.Parameter.VAR_KEYWORD), None)
    if kwargs is not None:
        known |= _behind_kwargs(net, kwargs, known)
    unset = [k for k, default in known.items() if default is REQUIRED or default is None]
    config = next((k for k in unset if is_config(k) or is_dataclass(_annotation(net, k))), None)
    made, held, form = _configuration(net, config) if config is not None else (None, {}, "")
    if not held:
        return Constructor(net, known, any_name=kwargs is not None)
    outer = {k: v for k, v in known.items() if k != config}
    return Constructor(
        net, {**held, **outer}, kwargs is not None, config, frozenset(held) - frozenset(outer), made, form
    )


def is_config(parameter: str) -> bool:
    """Whether an argument of this name is an object that holds others."""
    return parameter in _CONFIG


def _annotation(net: Any, parameter: str) -> Any:
    function = net.__init__ if inspect.isclass(net) else net
    try:
        return get_type_hints(function).get(parameter)
    except Exception:  # an annotation of names that are not there
        return None


def _configuration(net: Any, parameter: str) -> tuple[Callable[..., Any], dict[str, Any], str]:
    """What makes the object, its fields with their defaults, and its name."""
    stated = [_annotation(net, parameter), getattr(net, "config_class", None)]
    kind = next((one for one in stated if inspect.isclass(one) and _fields(one)), None) or _beside(net, parameter)
    if kind is not None:
        return kind, _fields(kind), kind.__name__
    read = _read_of(_texts(net), parameter)
    return _Settings, read, f"{parameter} with the attributes that the file reads"


class _Settings(dict[str, Any]):
    """A configuration of which only the names are known: `config.width` and `config["width"]`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the configuration has no '{name}': give it by --arg {name}=VALUE") from None

    __setattr__ = dict.__setitem__


def _fields(kind: type) -> dict[str, Any]:
    if is_dataclass(kind):
        found = {}
        for field in fields(kind):
            if field.init:
                default = field.default_factory() if field.default_factory is not MISSING else field.default
                found[field.name] = REQUIRED if default is MISSING else default
        return found
    try:
        parameters = inspect.signature(kind).parameters
    except (TypeError, ValueError):
        return {}
    return {k: p.default for k, p in parameters.items() if p.kind in _NAMED}


def _beside(net: Any, parameter: str) -> type | None:
    """The class of configurations that stands in the net's own file: by its name, or the only one that has all fields
    which the net reads."""
    home = inspect.getmodule(net)
    if home is None:
        return None
    classes = {k: v for k, v in vars(home).items() if inspect.isclass(v) and v.__module__ == home.__name__}
    for ending in ("Config", "Args", "Configuration", "Settings", "Params"):
        if (kind := classes.get(f"{net.__name__}{ending}")) is not None and _fields(kind):
            return kind
    read = set(_read_of(_texts(net), parameter))
    fitting = [kind for kind in classes.values() if is_dataclass(kind) and read and read <= set(_fields(kind))]
    return fitting[0] if len(fitting) == 1 else None


def _texts(net: Any) -> list[ast.AST]:
    """The text of the net and of all in its file that it names, to which a configuration is handed on."""
    for owner in (inspect.getmodule(net), net):
        try:
            tree = None if owner is None else ast.parse(textwrap.dedent(inspect.getsource(owner)))
        except (OSError, SyntaxError, TypeError):
            continue
        if tree is not None:
            defined = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
            reached: dict[str, ast.AST] = {}
            waiting = [net.__name__]
            while waiting:
                name = waiting.pop()
                if name in defined and name not in reached:
                    reached[name] = defined[name]
                    waiting += [node.id for node in ast.walk(defined[name]) if isinstance(node, ast.Name)]
            return list(reached.values()) or [tree]
    return []


def _read_of(trees: Iterable[ast.AST], owner: str) -> dict[str, Any]:
    """The names that a text reads from `owner`, as attributes or entries, with the defaults it states."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    found: dict[str, Any] = {}
    for node in nodes:
        if isinstance(node, ast.Attribute) and _is(node.value, owner):
            if isinstance(node.ctx, ast.Load) and id(node) not in called:
                found[node.attr] = REQUIRED
        elif isinstance(node, ast.Subscript) and _is(node.value, owner) and isinstance(node.slice, ast.Constant):
            found[str(node.slice.value)] = REQUIRED
    for node in nodes:
        if isinstance(node, ast.Call):
            found |= _stated(node, owner)
    return found


def _stated(node: ast.Call, owner: str) -> dict[str, Any]:
    """`owner.get(name, default)`, `owner.pop(name, default)`, `getattr(owner, name, default)`."""
    words = list(node.args)
    if isinstance(node.func, ast.Name) and node.func.id == "getattr" and words and _is(words[0], owner):
        words = words[1:]
    elif not (
        isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "pop") and _is(node.func.value, owner)
    ):
        return {}
    if not words or not isinstance(words[0], ast.Constant) or not isinstance(words[0].value, str):
        return {}
    try:
        return {words[0].value: ast.literal_eval(words[1]) if len(words) > 1 else REQUIRED}
    except ValueError:  # a default that is computed stays its own
        return {}


def _is(node: ast.AST, owner: str) -> bool:
    """`config`, or `self.config`."""
    return (isinstance(node, ast.Name) and node.id == owner) or (
        isinstance(node, ast.Attribute) and node.attr == owner and isinstance(node.value, ast.Name)
    )


def _behind_kwargs(net: Any, kwargs: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that reach a parent's constructor, and those that the net's own takes out of its `**kwargs`."""
    own = net.__init__ if inspect.isclass(net) else net
    if not isinstance(own, types.FunctionType):
        return {}
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(own)))
    except (OSError, SyntaxError, TypeError):
        return {}
    found = {k: v for k, v in _read_of([tree], kwargs).items() if k not in known}
    handed = next((c for c in ast.walk(tree) if isinstance(c, ast.Call) and _hands_on(c, kwargs)), None)
    parent = next((c for c in net.__mro__[1:] if "__init__" in vars(c)), None) if inspect.isclass(net) else None
    if handed is None or parent is None or parent.__module__.startswith("torch.nn"):
        return found
    taken = {word.arg for word in handed.keywords}
    above = constructor(parent, parent.__name__)
    names = [name for name in above.arguments if name not in taken][len(handed.args) :]
    return {**{name: above.arguments[name] for name in names if name not in known}, **found}


def _hands_on(call: ast.Call, kwargs: str) -> bool:
    passes = any(word.arg is None and _is(word.value, kwargs) for word in call.keywords)
    return passes and isinstance(call.func, ast.Attribute) and call.func.attr == "__init__"
