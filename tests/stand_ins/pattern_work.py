"""Finds every regular expression of the product, and texts on which one would work too long.

A pattern is taken apart by Python's own parser. For each of its repeats a text is made of a long
run of what the repeat takes, with what leads to it in front and something behind it that ends the
match.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeAlias, cast

PACKAGES: Final = ("caal_node", "mcp_bridge", "n8n")
USES: Final = ("match", "search", "finditer")
_CALLS: Final = {
    "compile": USES,
    "search": ("search",),
    "match": ("match",),
    "fullmatch": ("fullmatch",),
    "sub": ("finditer",),
    "subn": ("finditer",),
    "split": ("finditer",),
    "findall": ("finditer",),
    "finditer": ("finditer",),
}
Pattern: TypeAlias = "re.Pattern[Any]"
Made: TypeAlias = "Mapping[str, Any] | Callable[[], Any]"


@dataclass(frozen=True, slots=True)
class Found:
    """One pattern, where it is, and how it is used."""

    place: str
    """Such as `caal_node.toolsets.lists.markdown_list._ITEM`, or a line of a function."""
    pattern: Pattern
    uses: tuple[str, ...] = USES


# Where patterns are


def modules() -> list[ModuleType]:
    """Every module of the product, imported."""
    names = list(PACKAGES)
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        names += [each.name for each in pkgutil.walk_packages(path, f"{package}.")]
    return [importlib.import_module(name) for name in names if not name.endswith("__main__")]


def patterns_of_modules() -> Iterator[Found]:
    """The patterns that modules, their classes and whatever these hold keep."""
    everything = modules()
    uses = _uses(everything)
    for module in everything:
        imported = _imported(module)
        for name, value in list(vars(module).items()):
            if name.startswith("__") or name in imported or isinstance(value, ModuleType):
                continue
            place = f"{module.__name__}.{name}"
            for pattern in patterns_in(value):
                yield Found(place, pattern, uses.get(place, USES) if value is pattern else USES)


def patterns_in(value: Any, seen: set[int] | None = None) -> Iterator[Pattern]:
    """The patterns in an object, of our own classes, and in the usual containers."""
    seen = set() if seen is None else seen
    if id(value) in seen or isinstance(value, (str, bytes, int, float, ModuleType)):
        return
    seen.add(id(value))
    if isinstance(value, re.Pattern):
        yield value
        return
    if isinstance(getattr(value, "__self__", None), re.Pattern):  # `_FINDS = re.compile(...).match`
        yield value.__self__
        return
    inner: list[Any] = []
    if isinstance(value, Mapping):
        inner = [*value, *value.values()]
    elif isinstance(value, (list, tuple, set, frozenset)):
        inner = list(value)
    elif isinstance(value, type):
        ours = value.__module__.partition(".")[0] in PACKAGES
        inner = list(vars(value).values()) if ours else []
    elif is_dataclass(value):
        inner = [getattr(value, each.name, None) for each in fields(value)]
    elif type(value).__module__.partition(".")[0] in PACKAGES:
        inner = list(getattr(value, "__dict__", {}).values())
        slots = (each for kind in type(value).__mro__ for each in getattr(kind, "__slots__", ()))
        inner += [getattr(value, slot, None) for slot in slots]
    for each in inner:
        yield from patterns_in(each, seen)


def patterns_of_functions(made: Mapping[str, Made]) -> Iterator[Found]:
    """The patterns in calls such as `re.sub("...")` of functions.

    Args:
        made: For each function that makes a pattern of what it is given (`module.function`), names
            as they may be in it, or what gives such patterns.

    Raises:
        LookupError: a function makes a pattern of what it is given, and is not in `made`.
    """
    unused = dict(made)
    for module in modules():
        for where, call in _calls(_tree(module)):
            place = f"{module.__name__}.{where}"
            uses = _CALLS[cast("ast.Attribute", call.func).attr]
            given = made.get(place, {})
            try:
                source = _value(call.args[0], module, {} if callable(given) else given)
                flags = _flags(call, module)
            except NameError:
                if not callable(given):
                    raise LookupError(f"{place}:{call.lineno} makes a pattern") from None
                unused.pop(place, None)
                yield from (Found(f"{place}()", each, uses) for each in patterns_in(given()))
                continue
            unused.pop(place, None)
            pattern = source if isinstance(source, re.Pattern) else re.compile(source, flags)
            yield Found(f"{place}:{call.lineno}", pattern, uses)
    if unused:
        raise LookupError(f"these make no patterns any more: {list(unused)}")


@cache
def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))


def _imported(module: ModuleType) -> dict[str, str]:
    """What a module imports by name, and where each is defined."""
    return {
        one.asname or one.name: f"{node.module}.{one.name}"
        for node in ast.walk(_tree(module))
        if isinstance(node, ast.ImportFrom)
        for one in node.names
    }


def _uses(everything: Sequence[ModuleType]) -> dict[str, tuple[str, ...]]:
    """How patterns are used that are never given away: `NAME.match(...)` and the like alone."""
    used: dict[str, set[str]] = {}
    given_away: set[str] = set()
    for module in everything:
        names = _imported(module)
        methods = {
            id(node.value): node.attr
            for node in ast.walk(_tree(module))
            if isinstance(node, ast.Attribute)
        }
        for node in ast.walk(_tree(module)):
            if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
                continue
            place = names.get(node.id, f"{module.__name__}.{node.id}")
            if (method := methods.get(id(node), "")) in _CALLS:
                used.setdefault(place, set()).update(_CALLS[method])
            elif method not in ("pattern", "flags", "groups", "groupindex"):
                given_away.add(place)
    return {place: tuple(sorted(each)) for place, each in used.items() if place not in given_away}


def _calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    def within(node: ast.AST, where: str) -> Iterator[tuple[str, ast.Call]]:
        for child in ast.iter_child_nodes(node):
            named = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            inner = f"{where}.{child.name}".strip(".") if named else where  # type: ignore[attr-defined]
            if (
                isinstance(child, ast.Call)
                and isinstance(child.func, ast.Attribute)
                and isinstance(child.func.value, ast.Name)
                and child.func.value.id == "re"
                and child.func.attr in _CALLS
                and where
            ):
                yield where, child
            yield from within(child, inner)

    return within(tree, "")


def _value(node: ast.expr, module: ModuleType, given: Mapping[str, Any] | None = None) -> Any:
    source = compile(ast.Expression(node), "pattern", "eval")
    return eval(source, {**vars(module), **(given or {})})


def _flags(call: ast.Call, module: ModuleType) -> int:
    at = {"compile": 1, "search": 2, "match": 2, "fullmatch": 2, "findall": 2, "finditer": 2}
    place = at.get(cast("ast.Attribute", call.func).attr, 99)
    named = [each.value for each in call.keywords if each.arg == "flags"]
    return next((_value(each, module) for each in (*call.args[place:], *named)), 0)


# Texts that are hard for a pattern

_PARSER: Final[Any] = re._parser  # type: ignore[attr-defined]
_CONSTANTS: Final[Any] = re._constants  # type: ignore[attr-defined]
_REPEATS: Final = (
    _CONSTANTS.MAX_REPEAT,
    _CONSTANTS.MIN_REPEAT,
    getattr(_CONSTANTS, "POSSESSIVE_REPEAT", None),
)
MANY: Final = 40
"""A repeat that may come so often counts as one without an end."""
_CHARS: Final = " \n\ta0A_-.,:;'\"/\\<>{}[]()=*+#|&%@!?~`$^\réß\u00a0\u3042\u200b\x00"
_ENDS: Final = ("", "\x00", "\n", "x", " x", "!", "\nx")
VARIANTS: Final = 6
"""Characters that are tried of one repeat: one of each kind that the pattern tells apart."""
SAMPLES: Final = 4


@dataclass(frozen=True, slots=True)
class Text:
    """A text that can be made of any length."""

    head: str
    pump: str
    end: str

    def of(self, chars: int) -> str:
        return self.head + self.pump * max(1, chars // len(self.pump)) + self.end


def hard_texts(pattern: Pattern) -> list[Text]:
    """Texts on which a pattern with a fault works too long."""
    source = pattern.pattern
    text = source.decode("latin-1") if isinstance(source, bytes) else source
    tree = _PARSER.parse(
        text, pattern.flags & ~re.UNICODE if isinstance(source, bytes) else pattern.flags
    )
    singles = list(_singles(tree))
    alphabet = dict.fromkeys(
        (*_CHARS, *(chr(value) for value in _literals(tree) if value < 0x10000))
    )
    kinds: dict[tuple[bool, ...], str] = {}
    for char in alphabet:
        accepted = tuple(_accepts(node, char, pattern.flags) for node in singles)
        if any(accepted):
            kinds.setdefault(accepted, char)
    richest = [char for _, char in sorted(kinds.items(), key=lambda kind: -sum(kind[0]))]
    found: dict[Text, None] = {}

    def add(head: str, pump: str) -> None:
        for end in _ENDS:
            if pump:
                found[Text(head, pump, end)] = None

    for head, body in _repeats(tree, "", pattern.flags):
        pumps = [
            char
            for char in richest
            if len(body) == 1 and _is_single(body[0]) and _accepts(body[0], char, pattern.flags)
        ][:VARIANTS] or _samples(body, pattern.flags)[:SAMPLES]
        for pump in pumps:
            add(head, pump)
            add("", pump)
            if head:
                add("", head + pump)
                add("", head)
    for char in richest[:VARIANTS]:
        add("", char)
        add("", char + " ")
        add("", char + "\n")
    return list(found)


def _is_single(node: Any) -> bool:
    return node[0] in (_CONSTANTS.LITERAL, _CONSTANTS.NOT_LITERAL, _CONSTANTS.ANY, _CONSTANTS.IN)


def _children(node: Any) -> list[Any]:
    """The sequences in a node."""
    kind, value = node
    if kind in _REPEATS:
        return [value[2]]
    if kind is _CONSTANTS.SUBPATTERN:
        return [value[3]]
    if kind is _CONSTANTS.BRANCH:
        return list(value[1])
    if kind in (_CONSTANTS.ASSERT, _CONSTANTS.ASSERT_NOT):
        return [value[1]]
    if kind is getattr(_CONSTANTS, "ATOMIC_GROUP", None):
        return [value]
    if kind is _CONSTANTS.GROUPREF_EXISTS:
        return [each for each in value[1:] if each is not None]
    return []


def _singles(tree: Any) -> Iterator[Any]:
    for node in tree:
        if _is_single(node):
            yield node
        for child in _children(node):
            yield from _singles(child)


def _literals(tree: Any) -> Iterator[int]:
    for kind, value in _singles(tree):
        if kind in (_CONSTANTS.LITERAL, _CONSTANTS.NOT_LITERAL):
            yield value
        elif kind is _CONSTANTS.IN:
            for inner, given in value:
                if inner is _CONSTANTS.LITERAL:
                    yield given
                elif inner is _CONSTANTS.RANGE:
                    yield given[0]


def _accepts(node: Any, char: str, flags: int) -> bool:
    kind, value = node
    code = ord(char)
    fold = bool(flags & re.IGNORECASE)
    if kind is _CONSTANTS.ANY:
        return char != "\n" or bool(flags & re.DOTALL)
    if kind is _CONSTANTS.LITERAL:
        return code == value or (fold and char.lower() == chr(value).lower())
    if kind is _CONSTANTS.NOT_LITERAL:
        return code != value
    negated, taken = False, False
    for inner, given in value:
        if inner is _CONSTANTS.NEGATE:
            negated = True
        elif inner is _CONSTANTS.LITERAL:
            taken |= code == given or (fold and char.lower() == chr(given).lower())
        elif inner is _CONSTANTS.RANGE:
            taken |= given[0] <= code <= given[1] or (
                fold and given[0] <= ord(char.swapcase()[0]) <= given[1]
            )
        elif inner is _CONSTANTS.CATEGORY:
            taken |= _in_category(given, char)
    return taken != negated


def _in_category(category: Any, char: str) -> bool:
    name = str(category).removeprefix("CATEGORY_").removeprefix("UNI_")
    plain = name.removeprefix("NOT_")
    taken = {"DIGIT": str.isdecimal, "SPACE": str.isspace}.get(
        plain, lambda one: one.isalnum() or one == "_"
    )(char)
    return taken != (plain != name)


def _samples(sequence: Any, flags: int) -> list[str]:
    """A few short texts that a sequence takes, as far as look-arounds let it."""
    texts = [""]
    for node in sequence:
        texts = [text + more for text in texts for more in _samples_of(node, flags)][:SAMPLES]
    return texts


def _samples_of(node: Any, flags: int) -> list[str]:
    kind, value = node
    if kind is _CONSTANTS.LITERAL:
        return [chr(value)]
    if _is_single(node):
        return [char for char in ("a" + _CHARS) if _accepts(node, char, flags)][:1] or _own(node)
    if kind in _REPEATS:
        least = value[0]
        inner = _samples(value[2], flags)
        return [one * least for one in inner] if least else ["", *inner[:1]]
    if kind is _CONSTANTS.BRANCH:
        return [one for branch in value[1] for one in _samples(branch, flags)[:2]][:SAMPLES]
    if kind in (_CONSTANTS.ASSERT, _CONSTANTS.ASSERT_NOT):
        return [""]
    children = _children(node)
    return _samples(children[0], flags) if children else [""]


def _own(node: Any) -> list[str]:
    return [chr(each) for each in list(_literals([node]))[:1]] or [""]


def _repeats(sequence: Any, head: str, flags: int) -> Iterator[tuple[str, Any]]:
    """Each repeat without an end: a text that leads to it, and what it repeats."""
    for node in sequence:
        kind, value = node
        if kind in _REPEATS and value[1] >= MANY:
            yield head, value[2]
        for child in _children(node):
            yield from _repeats(child, head, flags)
        head += (_samples_of(node, flags) or [""])[0]


# How long a pattern works

FEW: Final = (12, 24, 32, 40, 48, 64, 96, 192, 384, 1_536)
"""Characters of the texts that are tried first: what takes exponential time is found while it still
ends."""
SLOW_S: Final = 0.000_02
"""What takes less for 1,536 characters is linear, or too quick to matter: quadratic work would take
5 ms for `MOST`."""
MUCH_S: Final = 0.02
"""What a step may take on the event loop."""
GROWN_S: Final = 0.002
"""Work that grows counts from a tenth of `MUCH_S` on: a slow machine finds nothing more than a
quick one does."""
MOST: Final = 24_576
"""Characters of the longest text."""


def superlinear(found: Found) -> str:
    """Say on which text a pattern's work grows faster than the text; "" if none was found."""
    for text, took in _trials(found):
        if _grows(took):
            return text
    return ""


def slowest(found: Found, chars: int) -> float:
    """Return the seconds that a pattern works at most on hard texts of so many characters."""
    return max(min(took(chars) for _ in range(3)) for _, took in _trials(found))


def _trials(found: Found) -> Iterator[tuple[str, Callable[[int], float]]]:
    is_bytes = isinstance(found.pattern.pattern, bytes)
    for text in hard_texts(found.pattern):
        for use in found.uses:

            def took(chars: int, use: str = use, text: Text = text) -> float:
                made = text.of(chars)
                return _timed(found, use, made.encode("latin-1", "replace") if is_bytes else made)

            yield f"{use} {text}", took


def _grows(took: Callable[[int], float]) -> bool:
    last = 0.0
    for chars in FEW:
        last = took(chars)
        if last > MUCH_S:  # nothing that is linear takes so long for so little
            return min(took(chars) for _ in range(2)) > MUCH_S
    chars = FEW[-1]
    # Four times the text: 4 where the work is linear, 16 where it is quadratic.
    if last < SLOW_S or last < 6 * min(took(chars // 4) for _ in range(2)):
        return False
    while last < GROWN_S and chars < MOST:
        chars *= 2
        last = took(chars)
    if last < GROWN_S:
        return False
    quarter, half, whole = (
        min(took(each) for _ in range(3)) for each in (chars // 4, chars // 2, chars)
    )
    return whole > 3 * half and half > 3 * quarter


def _timed(found: Found, use: str, text: Any) -> float:
    run = getattr(found.pattern, use)
    began = time.process_time()
    if use == "finditer":
        for _ in run(text):
            pass
    else:
        run(text)
    return time.process_time() - began
