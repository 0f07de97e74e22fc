"""Finds secrets that this process does not know, by the shapes that their makers gave them.

Keys of services have prefixes so that scanners find them. The shapes here are those that the makers
document or that gitleaks' rules (github.com/gitleaks/gitleaks, config/gitleaks.toml) have:

- GitHub, "Behind GitHub's new authentication token formats"; GitLab, "Token prefixes";
  Slack, "Token types"; AWS, "Unique identifiers" (AKIA, ASIA); Stripe, "API keys"; Google, API keys
  (AIza) and OAuth (ya29, GOCSPX); OpenAI and Anthropic (sk-); npm, PyPI, Hugging Face, SendGrid;
- JSON Web Tokens (RFC 7519), PEM private keys (RFC 7468), user and password in a URL (RFC 3986),
  the Authorization header (RFC 9110).

Precision comes first: a shape matches what hardly can be anything else. Values that somebody only
calls a password (`password = x`) are a second, weaker set: in a result they may be just what the
person asked for, in a log they never are.

Each shape has a literal marker, which is searched for, and only around it is a pattern tried. No
pattern repeats without a bound, so the time grows with the length of the text alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

# Redacts text that comes in pieces of any size, such as a reply on its way to captions.

_PEM: Final = "-----BEGIN "
_PEM_LAST_LINE: Final = "-----END "
_PEM_DASHES: Final = "-----"

NUMBER_CHARS: Final = 64
"""Characters of words with digits that are held back together, as the parts of one number are."""


class StreamRedaction:
    """Passes on whole words, redacted; the last one is held back until it has ended.

    A number in groups (`+47 22 33 44 55`) is held back as one word, and a private key, which is
    many lines, from its first to its last.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact: Final = redact
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return what can be said of the text by now."""
        self._held += piece
        whole = self._whole()
        ready, self._held = self._held[:whole], self._held[whole:]
        return self._redact(ready) if ready else ""

    def finish(self) -> str:
        """Return the rest, as nothing follows it."""
        ready, self._held = self._held, ""
        return self._redact(ready)

    def _whole(self) -> int:
        """Return where the text may be cut: between words, and in no number and no private key."""
        held = self._held
        begin = held.rfind(_PEM)
        key_end = _private_key_end(held, begin) if begin >= 0 else 0
        if key_end is None:
            return begin
        whole = max(held.rfind(" "), held.rfind("\n")) + 1
        if not whole and len(held) > MAX_KEY_CHARS:
            whole = len(held)
        while whole > 0 and len(held) - whole < NUMBER_CHARS:
            before = max(held.rfind(" ", 0, whole - 1), held.rfind("\n", 0, whole - 1)) + 1
            if not any(char.isdigit() for char in held[before:whole]):
                break
            whole = before
        return begin if begin < whole < key_end else whole


def _private_key_end(text: str, begin: int) -> int | None:
    """Return where the private key that begins there ends; None while its end is to come."""
    end = text.find(_PEM_LAST_LINE, begin)
    closing = text.find(_PEM_DASHES, end + len(_PEM_LAST_LINE)) if end >= 0 else -1
    if closing >= 0:
        return closing + len(_PEM_DASHES)
    return None if len(text) - begin < PEM_CHARS else begin


Span: TypeAlias = tuple[int, int]
"""Where something begins and ends in a text."""

REDACTED: Final = "***"
"""It is what `mcp_bridge` puts there as well."""
MAX_KEY_CHARS: Final = 4_096
"""Characters of one token. A JWT with many claims has 2,000."""
_KEY: Final = rf"[\w-]{{20,{MAX_KEY_CHARS}}}"
_NO_WORD: Final = r"(?<![A-Za-z0-9])"
_PEM_BEGIN: Final = "-----BEGIN "
_PEM_HEAD: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
PEM_CHARS: Final = 16_384
"""Characters of a private key's block; one of RSA with 8,192 bits has 6,400."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """The group 1 of `pattern`, or all of it, is the secret. It is tried where `marker` stands."""

    marker: str
    pattern: re.Pattern[str]


def _prefixed(*prefixes: str, rest: str = _KEY) -> tuple[_Shape, ...]:
    return tuple(
        _Shape(each, re.compile(_NO_WORD + re.escape(each) + rest, re.ASCII)) for each in prefixes
    )


_SHAPES: Final = (
    *_prefixed("AKIA", "ASIA", rest=r"[A-Z2-7]{16}(?![A-Za-z0-9])"),
    *_prefixed("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    *_prefixed("glpat-", "gldt-", "glrt-", "glptt-", "glsoat-", "glcbt-", "gloas-"),
    *_prefixed("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxe.xox", "xapp-"),
    *_prefixed("sk-", rest=rf"(?=[\w-]{{0,64}}\d)(?=[\w-]{{0,64}}[A-Za-z]){_KEY}"),
    *_prefixed("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_", rest=r"\w{16,256}"),
    *_prefixed("AIza", rest=r"[\w-]{35}(?![\w-])"),
    *_prefixed("ya29.", "GOCSPX-", "pypi-AgEI", "npm_", "hf_"),
    *_prefixed("SG.", rest=r"[\w-]{16,32}\.[\w-]{16,64}"),
    *_prefixed("eyJ", rest=rf"(?:(?![_-]eyJ)[\w-]){{8,{MAX_KEY_CHARS}}}\.[\w-]{{8,{MAX_KEY_CHARS}}}"
               rf"(?:\.[\w-]{{0,{MAX_KEY_CHARS}}}){{1,3}}"),
    _Shape(
        "hooks.slack.com/services/",
        re.compile(r"hooks\.slack\.com/services/(T\w{6,20}/B\w{6,20}/\w{16,40})", re.ASCII),
    ),
    # user:password@ in a URL: from the "://" on.
    _Shape("://", re.compile(r"://[^\s/?#@:\"'\\]{0,128}:([^\s/?#@\"'\\]{1,256})@")),
)  # fmt: skip
_SCHEME_VALUE: Final = re.compile(
    r"(?:bearer|basic|token|digest|apikey)(?:%20|[ \t+]){1,4}(?=[^\s\"',;]{0,64}[\d=])"
    rf"([\w.~+/=:-]{{12,{MAX_KEY_CHARS}}})",
    re.IGNORECASE | re.ASCII,
)
_SCHEMES: Final = ("bearer", "basic", "authorization")
_AUTHORIZATION: Final = re.compile(
    r"authorization[\\\"']{0,4}[ \t]{0,4}[:=][ \t]{0,4}[\\\"']{0,4}"
    r"(?:(?:bearer|basic|token|digest|apikey)[ \t]{1,4})?"
    rf"([^\s\"'\\,;]{{8,{MAX_KEY_CHARS}}})",
    re.IGNORECASE,
)
_NAMES: Final = (
    "password", "passwd", "passwort", "passphrase", "pwd", "secret", "api_key", "apikey", "api-key",
    "access_key", "accesskey", "access-key", "private_key", "privatekey", "private-key", "token",
)  # fmt: skip
_PAGING: Final = re.compile(r"(?:page|next|prev|sync|continuation|cursor)[_-]?$", re.IGNORECASE)
"""Tokens of these names are places in a list, and no secrets."""
_ASSIGNED: Final = re.compile(
    r"(?:[\\\"']{0,4})[ \t]{0,3}(=|:)[ \t]{0,3}([\\\"']{0,4})([^\s\"'\\,;&<>{}\[\]()]{4,256})"
)
_NO_SECRET: Final = re.compile(
    r"\*+|null|none|true|false|required|optional|string|redacted|undefined|[xX.]+|\$\w+", re.I
)


def without_keys(text: str) -> str:
    """Return `text` with `***` in place of whatever has the shape of a key."""
    return _replaced(text, key_spans(text))


def without_secrets(text: str) -> str:
    """Return `text` also without what somebody calls a password, secret, token or key."""
    return _replaced(text, (*key_spans(text), *_assigned_spans(text)))


def key_spans(text: str) -> Iterator[Span]:
    """Yield where keys are. Spans may overlap."""
    if _PEM_BEGIN in text:
        yield from _private_keys(text)
    for shape in _SHAPES:
        at = text.find(shape.marker)
        while at >= 0:
            found = shape.pattern.match(text, at)
            if found is not None:
                yield found.span(found.lastindex or 0)
            at = text.find(shape.marker, found.end() if found else at + len(shape.marker))
    lower = _lower(text)
    for word in _SCHEMES:
        pattern = _AUTHORIZATION if word == "authorization" else _SCHEME_VALUE
        at = lower.find(word)
        while at >= 0:
            found = pattern.match(text, at)
            if found is not None:
                yield found.span(1)
            at = lower.find(word, found.end() if found else at + len(word))


def called_secret(name: str, value: str) -> bool:
    """Say whether a value under this name is a secret by its name: `wifi_password`, `apiKey`."""
    lower = _lower(name)
    ending = next((each for each in _NAMES if lower.endswith(each)), None)
    if ending is None or _PAGING.search(lower[: -len(ending)]):
        return False
    return _may_be_secret(ending, value, quoted=True)


def _lower(text: str) -> str:
    """Return `text` in small letters, each character at its place: `İ` alone would become two."""
    return text.replace("İ", "I").lower()


def _private_keys(text: str) -> Iterator[Span]:
    at = text.find(_PEM_BEGIN)
    while at >= 0:
        head = _PEM_HEAD.match(text, at)
        if head is None:
            at = text.find(_PEM_BEGIN, at + len(_PEM_BEGIN))
            continue
        end = _PEM_END.search(text, head.end(), head.end() + PEM_CHARS)
        last = end.end() if end else min(len(text), head.end() + PEM_CHARS)
        yield at, last
        at = text.find(_PEM_BEGIN, last)


def _assigned_spans(text: str) -> Iterator[Span]:
    lower = _lower(text)
    for name in _NAMES:
        at = lower.find(name)
        while at >= 0:
            end = at + len(name)
            found = _ASSIGNED.match(text, end)
            if found is not None and not _PAGING.search(text, max(0, at - 16), at):
                sure = found[1] == "=" or bool(found[2])
                if _may_be_secret(name, found[3], quoted=sure):
                    yield found.span(3)
            at = lower.find(name, found.end() if found else end)


def _may_be_secret(name: str, value: str, *, quoted: bool) -> bool:
    """Say whether the value of an assignment is a secret and not a word of a sentence."""
    if _NO_SECRET.fullmatch(value):
        return False
    has_digit = any(char.isdigit() for char in value)
    if name.startswith("pass") or name == "pwd":
        return len(value) >= 4 and (quoted or has_digit)
    return len(value) >= 8 and has_digit and any(char.isalpha() for char in value)


def _replaced(text: str, spans: Iterable[Span]) -> str:
    parts: list[str] = []
    done = 0
    for start, end in sorted(spans):
        if start >= done:
            parts += (text[done:start], REDACTED)
        done = max(done, end)
    return "".join((*parts, text[done:])) if parts else text
