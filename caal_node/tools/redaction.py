"""Takes secrets out of everything that a tool gives.

Those that this process knows are found by value, whichever tier a text comes from: a workflow that
echoes its request, a method that prints its settings, a server that knows another's key.
`mcp_bridge.core.sanitize` has the forms in which programs repeat them: as it is, in JSON, URLs,
base64 and hex. Others, such as a private key in a file, are found by their shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, Protocol, TypeAlias, cast

from caal_node.redaction.secret_shapes import MAX_KEY_CHARS, without_keys
from mcp_bridge.core.sanitize import REDACTED, secret_forms


class HoldsSecrets(Protocol):
    """What has secrets: settings, a source of tools, a toolset."""

    @property
    def secrets(self) -> Iterable[str]:
        """The secrets as they are now: some are made for one call each."""
        ...


_Held: TypeAlias = tuple[tuple[str, ...], ...]
"""The secrets of each holder."""


MANY_FORMS: Final = 400
"""Forms that are looked for on the event loop in a short text: 2 ms. More are, in a thread."""
MAX_SHAPE_CHARS: Final = 262_144
"""Characters of a value that are searched for keys, some 10 ms. Of a longer one the line that is
left for the model is: a search of megabytes would keep the event loop waiting, although it runs in
a thread, and a key that is cut in two opens nothing."""
_MAX_DEPTH: Final = 100


class Redaction:
    """Replaces every secret by `***`. Its cost is linear in text and in secrets.

    Args:
        holders: They hold the secrets that are found by value. Each is asked for every text.
        known: Further secrets, which stay the same.
        shapes: Whether what has the shape of a key is a secret, too.
    """

    def __init__(
        self, *holders: HoldsSecrets, known: Iterable[str] = (), shapes: bool = True
    ) -> None:
        self._holders = list(holders)
        self._known: Final = tuple(known)
        self._shapes: Final = shapes
        self._last: tuple[_Held, tuple[str, ...]] = ((), secret_forms(self._known))
        """What the holders had for the last text, and the forms that are looked for then."""

    def add(self, holder: HoldsSecrets) -> None:
        """Look for the secrets of one more holder from now on."""
        self._holders.append(holder)

    @property
    def has_many(self) -> bool:
        """Whether so much is looked for that it had better be done in a thread."""
        return len(self._forms()) > MANY_FORMS

    def _forms(self) -> tuple[str, ...]:
        held = tuple([tuple(each.secrets) for each in self._holders])
        if held != (last := self._last)[0]:
            # One assignment, as texts are redacted in threads as well.
            self._last = last = held, secret_forms((*self._known, *chain.from_iterable(held)))
        return last[1]

    def text(self, text: str) -> str:
        """Return `text` without secrets."""
        return self._without_keys(self.known(text))

    def known(self, text: str) -> str:
        """Return `text` without the secrets that are known by value."""
        return _replaced(text, self._forms())

    def _without_keys(self, text: str) -> str:
        return without_keys(text) if self._shapes else text

    def beginning(self, text: str, max_chars: int) -> str:
        """Return the beginning of `text` without secrets; none is cut apart at its end."""
        forms = self._forms()
        longest = len(forms[0]) if forms else 0
        if self._shapes:
            text = without_keys(text[: max_chars + longest + MAX_KEY_CHARS])
        if len(text) <= max_chars + longest:
            return _replaced(text, forms)
        head = text[: max_chars + longest]
        # What the cut may have halved is at the end, and no longer than the longest form.
        return _replaced(head, forms)[: -longest or None]

    def value(self, value: Any) -> Any:
        """Return a JSON value without secrets in its texts and keys."""
        forms = self._forms()
        whole = "\0".join(_texts(value))
        found = tuple(form for form in forms if form in whole)
        shapes = len(whole) <= MAX_SHAPE_CHARS and self._without_keys(whole) != whole

        def clean(text: str) -> str:
            text = _replaced(text, found)
            return without_keys(text) if shapes else text

        return _without(value, clean, 0) if found or shapes else value


def _texts(value: Any) -> Iterator[str]:
    """Yield every text of a value, one that contains itself included."""
    stack: list[object] = [value]
    seen: set[int] = set()
    while stack:
        each = stack.pop()
        if isinstance(each, str):
            yield each
        elif each is None or isinstance(each, int | float) or id(each) in seen:
            continue
        elif isinstance(each, Mapping):
            seen.add(id(cast("object", each)))
            members = cast("Mapping[Any, Any]", each)
            yield from (key for key in members if isinstance(key, str))
            stack += members.values()
        elif isinstance(each, list | tuple):
            seen.add(id(cast("object", each)))
            stack += cast("Iterable[Any]", each)


def _without(value: Any, clean: Callable[[str], str], depth: int) -> Any:
    if isinstance(value, str):
        return clean(value)
    if depth > _MAX_DEPTH:
        return REDACTED  # no line for a model is so deep
    if isinstance(value, Mapping):
        members = cast("Mapping[Any, Any]", value).items()
        return {_without(key, clean, 0): _without(each, clean, depth + 1) for key, each in members}
    if isinstance(value, list | tuple):
        return [_without(each, clean, depth + 1) for each in cast("Iterable[Any]", value)]
    return value


def _replaced(text: str, forms: Iterable[str]) -> str:
    for form in forms:
        if form in text:
            text = text.replace(form, REDACTED)
    return text
