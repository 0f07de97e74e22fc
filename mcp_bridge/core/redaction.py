"""Finds secrets by value: as they are, and in the forms in which programs repeat them.

A server that fails tends to print what it was given, and a key is a secret whatever it is called.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final
from urllib.parse import parse_qsl, quote, quote_plus, urlsplit

HIDDEN: Final = "***"
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


def looks_secret(name: str, value: str) -> bool:
    """Tells by the name that somebody gave it, or by its form, whether a value is like a key."""
    return bool(_NAME.search(name.replace("-", "_")) or _VALUE.fullmatch(value))


def redact(text: str, secrets: Sequence[str]) -> str:
    """Replaces every one of `secrets`, in each form that programs write it in."""
    for form in _forms(tuple(secrets)):
        if form in text:
            text = text.replace(form, HIDDEN)
    return text


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


@lru_cache(maxsize=256)
def _forms(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """Gives the longest first, so that no form leaves the rest of a longer one."""
    found: set[str] = set()
    for secret in secrets:
        for part in {secret, secret.strip(), *secret.splitlines()}:
            if len(part) >= _MIN_SECRET_CHARS:
                found.update(_encoded(part))
    return tuple(sorted(found, key=lambda form: (-len(form), form)))


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
