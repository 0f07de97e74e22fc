"""Addresses and names that machines gave: links, e-mail, paths, identifiers."""

from __future__ import annotations

import re
from typing import Final

from caal_node.tts_text.spoken_forms import Wording

LINK: Final = re.compile(r"(?:https?|ftp|wss?|rtsp|file)://\S+|\bwww\.[\w-]+\.\S+", re.IGNORECASE)
_HOST: Final = re.compile(
    r"(?:\w+://)?(?:[^@/?#\s]*@)?(?:www\.)?(\[[^\]]*\]|[^/?#:\\\s]*)(?::\d+)?(.*)"
)
_BARE_LINK: Final = re.compile(
    r"(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev|gov|edu|co|uk|de|eu|info|app|ai|us|ca|fr|nl|ch)/\S+",
    re.IGNORECASE,
)
_EMAIL: Final = re.compile(r"(?:mailto:)?([\w.+-]+)@([\w-]+(?:\.[\w-]+)+)")
_UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_HASH: Final = re.compile(r"(?:sha\d+:)?(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{16,128}", re.I)
_EXTENSIONS: Final = (
    "txt|md|py|js|ts|json|ya?ml|toml|ini|cfg|conf|log|csv|tsv|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|"
    "svg|mp3|mp4|wav|ogg|flac|zip|gz|tar|sh|html?|css|xml|sql|db|rs|go|java|c|h|cpp|env|lock|service"
)
_PATH: Final = re.compile(
    rf"(?:~|\.{{1,2}})?(?:/[\w.@%+-]+){{2,}}/?|(?:~|\.{{1,2}})/[\w.@%+-]+/?"
    rf"|[\w.-]+(?:/[\w.-]+)+\.(?:{_EXTENSIONS})|[A-Za-z]:(?:\\[\w.@%+-]+)+\\?"
)
_FILE: Final = re.compile(rf"[\w-]+\.(?:{_EXTENSIONS})")
_LONG_PATH: Final = 3
"""Of a longer path only the last name and its folder are said: the rest nobody keeps in mind."""
_ENTITY: Final = re.compile(r"([a-z][a-z0-9_]*)((?:\.[a-z0-9_]+)+)")
_DOMAINS_NAMES: Final = (
    "light switch sensor binary_sensor climate media_player cover lock fan scene script "
    "automation input_boolean input_number input_select camera vacuum person device_tracker "
    "group weather alarm_control_panel button number select humidifier water_heater zone timer "
    "siren"
)
_DOMAINS: Final = frozenset(_DOMAINS_NAMES.split())
"""Home Assistant's, of which `sensor.temperature` has no underscore to be known by."""
_CALL: Final = re.compile(r"([A-Za-z_][\w.]*)\(\)?")
_NAME: Final = re.compile(r"[\w.:-]+")
_UNDERSCORES: Final = re.compile(r"(?<=[^\W_])_+(?=[^\W_])")


def host(url: str, wording: Wording) -> str:
    """What is said for an address: its host, and that it is a link where it has a path."""
    match = _HOST.match(url)
    name, rest = (match[1], match[2]) if match else (url, "")
    return name if rest in ("", "/") else wording.phrase("link", host=name or "localhost")


def spoken_name(core: str, after: str, wording: Wording) -> str | None:
    """What is said for `core`, a word without the punctuation around it; None for no name."""
    if "@" in core and (email := _EMAIL.fullmatch(core)):
        name = email[1].replace("_", " ").replace("+", " " + wording.phrases["plus"] + " ")
        return wording.phrase("email", name=name, host=email[2])
    if len(core) >= 16:
        if _UUID.fullmatch(core):
            named = after in ("id", "uuid")
            return wording.phrase("uuid_named" if named else "uuid", end=" ".join(core[-4:]))
        if _HASH.fullmatch(core):
            return wording.phrase("hash", end=" ".join(core[-4:]))
    if "/" in core or "\\" in core:
        if _BARE_LINK.fullmatch(core):
            return host(core, wording)
        return _path(core, wording) if _PATH.fullmatch(core) else None
    return _identifier(core)


def _path(path: str, wording: Wording) -> str:
    slash = wording.phrases["slash"]
    parts = [_plain(p) for p in re.split(r"[/\\]", path) if p and p not in (".", "..")]
    if parts[:1] == ["~"]:
        parts[0] = wording.phrases["home"]
    if not parts:
        return path
    if len(parts) > _LONG_PATH:
        return wording.phrase("path", name=parts[-1], folder=parts[-2])
    said = f" {slash} ".join(parts)
    return f"{slash} {said}" if path.startswith("/") else said


def _identifier(core: str) -> str | None:
    if call := _CALL.fullmatch(core):
        core, changed = call[1], True
    else:
        changed = False
    if _FILE.fullmatch(core):
        return _plain(core)
    if entity := _ENTITY.fullmatch(core):
        if "_" in core or entity[1] in _DOMAINS:
            return _plain(core.replace(".", " "))
    elif "_" in core and _NAME.fullmatch(core):
        return _plain(core)
    return core if changed else None


def _plain(name: str) -> str:
    return _UNDERSCORES.sub(" ", name).strip("_") or name
