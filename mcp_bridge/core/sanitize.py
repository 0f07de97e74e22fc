"""Takes out of texts and logs what must not be in them: secrets, and characters nobody sees.

Secrets are found by value, as they are and in the forms in which programs repeat them: a server
that fails tends to print what it was given, and a key is a secret whatever it is called.

Hidden characters could carry instructions to a model that reads them: control characters and
terminal sequences, directions, zero-width characters, tags (U+E0000), runs of variation selectors,
fillers. What writing needs stays: a line break, a joiner between two emoji or two letters of a
script that joins, one variation selector behind a sign that has variants.
Blocks: https://www.unicode.org/reports/tr44/ (Default_Ignorable_Code_Point)
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, cast
from urllib.parse import parse_qsl, quote, quote_plus, urlsplit

REDACTED: Final = "***"
_MIN_SECRET_CHARS: Final = 6
"""Shorter values (`1`, `true`, `en`) are no secrets, and hiding them would garble every message."""
_MIN_ENCODED_CHARS: Final = 8
"""Base64 of shorter values would be found anywhere."""
_NAME: Final = re.compile(
    r"token|secret|passw|passphrase|pwd|api_?key|access_?key|private|credential|auth|cookie|session"
    r"|bearer|signature|dsn|(?:^|_)(?:key|pat|pass|sig|jwt)(?:_|$)",
    re.IGNORECASE,
)
_VALUE: Final = re.compile(
    r"sk-[\w-]{16,}|gh[a-z]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[a-z]-[\w-]{10,}"
    r"|AKIA[A-Z0-9]{12,}|AIza[\w-]{30,}|eyJ[\w-]{8,}\.[\w-]+\.[\w-]*|-----BEGIN [\s\S]+"
    r"|(?=[^\s/:.]*\d)(?=[^\s/:.]*[A-Za-z])[A-Za-z0-9_+=-]{32,}"
)
"""This matches keys of well-known services, PEM, and long words of letters and digits."""
_OPTION: Final = re.compile(r"--?([\w-]+)(?:=(.*))?", re.DOTALL)
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_TERMINAL: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)")
_SEPARATORS: Final = "\u2028\u2029"
_JOINERS: Final = "\u200c\u200d"
_VARIANTS: Final = "\ufe0e\ufe0f"
_JOINING_SCRIPTS: Final = 0x0600
"""The scripts from Arabic on; Latin, Greek and Cyrillic never join."""
_MAX_DEPTH: Final = 100


def looks_secret(name: str, value: str) -> bool:
    """Tells by the name that somebody gave it, or by its form, whether a value is like a key."""
    return bool(_NAME.search(name.replace("-", "_")) or _VALUE.fullmatch(value))


def redact(text: str, secrets: Sequence[str]) -> str:
    """Replaces every one of `secrets`, in each form that programs write it in."""
    for form in _forms(tuple(secrets)):
        if form in text:
            text = text.replace(form, REDACTED)
    return text


def secret_forms(secrets: Sequence[str]) -> tuple[str, ...]:
    """Gives every form that `redact` looks for, the longest first."""
    return _forms(tuple(secrets))


def secrets_in_headers(headers: Mapping[str, str]) -> Iterator[str]:
    """Yields the values, and what follows a scheme: `Bearer X`, `Basic <user:X in base64>`."""
    for value in headers.values():
        yield value
        scheme, _, rest = value.partition(" ")
        if rest:
            yield rest
        if scheme.lower() == "basic":
            try:
                yield base64.b64decode(rest, validate=True).decode().partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                continue


def secrets_in_url(url: str) -> Iterator[str]:
    """Yields the password, and what the query calls a key."""
    try:
        parts = urlsplit(url)
        if parts.password:
            yield parts.password
        yield from (v for k, v in parse_qsl(parts.query) if looks_secret(k, v))
    except ValueError:
        return


def secrets_in_args(args: Sequence[str]) -> Iterator[str]:
    """Yields the X of `--api-key X` and `--token=X`, and what looks like a key by itself."""
    name = ""
    for word in args:
        option = _OPTION.fullmatch(word)
        if option is None:
            if looks_secret(name, word):
                yield word
            name = ""
        elif option[2] is None:
            name = option[1]
        else:
            if looks_secret(option[1], option[2]):
                yield option[2]
            name = ""


def secrets_in_env(env: Mapping[str, str]) -> Iterator[str]:
    """Yields the values of variables that look like keys."""
    return (value for name, value in env.items() if looks_secret(name, value))


@lru_cache(maxsize=64)
def _forms(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """Gives the longest first, so that no form leaves the rest of a longer one."""
    found = frozenset[str]().union(*map(_forms_of, secrets))
    return tuple(sorted(found, key=lambda form: (-len(form), form)))


@lru_cache(maxsize=1024)
def _forms_of(secret: str) -> frozenset[str]:
    """Gives them by secret, as a token that is new leaves those of all others as they were."""
    parts = {secret, secret.strip(), *secret.splitlines()}
    return frozenset(
        form for part in parts if len(part) >= _MIN_SECRET_CHARS for form in _encoded(part)
    )


def _encoded(secret: str) -> Iterator[str]:
    yield secret
    for ascii_only in (True, False):
        yield json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
    for coded in (quote(secret), quote(secret, safe=""), quote_plus(secret)):
        yield coded
        yield re.sub(r"%[0-9A-F]{2}", lambda found: found[0].lower(), coded)
    data = secret.encode("utf-8", "surrogatepass")
    yield data.hex()
    if len(secret) >= _MIN_ENCODED_CHARS:
        for before in range(3):
            for encode in (base64.b64encode, base64.urlsafe_b64encode):
                yield _within(encode, data, before)


def _within(encode: Any, data: bytes, before: int) -> str:
    """Gives what base64 makes of `data` where it follows `before` bytes more, modulo three."""
    coded: str = encode(b"\0" * before + data).decode().rstrip("=")
    # The first and last characters hold bits of the neighbours.
    whole = (before + len(data)) * 8 // 6
    return coded[-(-before * 8 // 6) : whole]


def visible_text(text: str) -> str:
    """Gives `text` as a person would see it."""
    if text.isascii() and text.isprintable():
        return text
    text = _TERMINAL.sub("", text)
    if _HIDDEN.search(text) is None:
        return text
    return _HIDDEN.sub(_kept, text)


def one_line(text: str, max_chars: int = 300) -> str:
    """Gives `text` as a person would see it, on one line, cut."""
    return " ".join(visible_text(text).split())[:max_chars]


def clean_text(text: str, max_chars: int) -> str:
    """Gives `text` as a person sees it, cut with a mark."""
    seen = visible_text(text).strip()
    return seen if len(seen) <= max_chars else f"{seen[: max_chars - 1]}…"


def is_visible(text: str) -> bool:
    """Tells whether nothing in `text` is hidden."""
    return visible_text(text) == text


def visible_value(value: Any, depth: int = 0) -> Any:
    """Removes what is hidden in every text of a JSON value, its keys included."""
    if isinstance(value, str):
        return visible_text(value)
    if depth > _MAX_DEPTH:
        return value  # parsed JSON is never so deep
    if isinstance(value, list):
        return [visible_value(item, depth + 1) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        found: dict[str, Any] = {}
        for key, item in cast("dict[str, Any]", value).items():
            seen = visible_text(key)
            while seen in found:
                seen += "_"
            found[seen] = visible_value(item, depth + 1)
        return found
    return value


def may_hide(written: str) -> bool:
    """Tells by a quick look whether JSON text may hold such characters, escaped or not."""
    return "\\u" in written or _HIDDEN.search(written) is not None


def _kept(found: re.Match[str]) -> str:
    char, text, at = found[0], found.string, found.start()
    if char in _SEPARATORS:
        return "\n"
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if char in _VARIANTS:
        return char if _has_variants(before) else ""
    if char in _JOINERS and before and after:
        if _joins(before) and _joins(after):
            return char
        if before in _VARIANTS:
            before = text[at - 2 : at - 1]
        if char == _JOINERS[1] and _is_sign(before) and _is_sign(after):
            return char
    return ""


def _joins(char: str) -> bool:
    return (
        ord(char) >= _JOINING_SCRIPTS
        and unicodedata.category(char)[0] in "LM"
        and (_HIDDEN.match(char) is None)
    )


def _is_sign(char: str) -> bool:
    return bool(char) and unicodedata.category(char) in ("So", "Sk")


def _has_variants(char: str) -> bool:
    return bool(char) and (
        unicodedata.category(char) in ("So", "Sm", "Sk") or char in "#*0123456789‼⁉"
    )


# Keeps excerpts of messages out of the logs of the MCP SDK.

_LOGGERS = (
    "mcp.client.streamable_http",
    "mcp.client.sse",
    "mcp.client.session",
    "mcp.shared.jsonrpc_dispatcher",
)


def drop_message_excerpts() -> None:
    """Drop what the SDK logs of a message that it cannot read: a traceback with an excerpt of it.

    Whoever made the call gets an error anyway. It holds for the whole process.
    """
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_has_no_traceback)


def _has_no_traceback(record: logging.LogRecord) -> bool:
    return not record.exc_info
