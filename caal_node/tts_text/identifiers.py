"""Spoken forms of addresses and of names made for machines: links, e-mail, paths, identifiers."""

from __future__ import annotations

import re
from typing import Final

from caal_node.tts_text.spoken_forms import SpokenForms

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
_PATH_PARTS: Final = 3
"""Of a longer path only the last name and its folder are said, as nobody keeps more in mind."""
_ENTITY: Final = re.compile(r"([a-z][a-z0-9_]*)((?:\.[a-z0-9_]+)+)")
_ENTITY_DOMAINS: Final = re.compile(
    "light|switch|sensor|binary_sensor|climate|media_player|cover|lock|fan|scene|script|"
    "automation|input_boolean|input_number|input_select|camera|vacuum|person|device_tracker|"
    "group|weather|alarm_control_panel|button|number|select|humidifier|water_heater|zone|timer|"
    "siren"
)
"""Home Assistant's domains: `sensor.temperature` has no underscore to be known by."""
_CALL: Final = re.compile(r"([A-Za-z_][\w.]*)\(\)?")
_NAME: Final = re.compile(r"[\w.:-]+")
UNDERSCORES: Final = re.compile(r"(?<=[^\W_])_+(?=[^\W_])")


def spoken_link(url: str, forms: SpokenForms) -> str:
    """Return what is said for an address: its host, told to be a link where it has a path."""
    match = _HOST.match(url)
    name, rest = (match[1], match[2]) if match else (url, "")
    return name if rest in ("", "/") else forms.phrase("link", host=name or "localhost")


def spoken_identifier(word: str, word_before: str, forms: SpokenForms) -> str | None:
    """Return what is said for `word`, given without punctuation, or None if it is no identifier."""
    if "@" in word and (email := _EMAIL.fullmatch(word)):
        name = email[1].replace("_", " ").replace("+", " " + forms.phrases["plus"] + " ")
        return forms.phrase("email", name=name, host=email[2])
    if len(word) >= 16:
        if _UUID.fullmatch(word):
            named = word_before in ("id", "uuid")
            return forms.phrase("uuid_named" if named else "uuid", end=" ".join(word[-4:]))
        if _HASH.fullmatch(word):
            return forms.phrase("hash", end=" ".join(word[-4:]))
    if "/" in word or "\\" in word:
        if _BARE_LINK.fullmatch(word):
            return spoken_link(word, forms)
        return _spoken_path(word, forms) if _PATH.fullmatch(word) else None
    return _spoken_name(word)


def _spoken_path(path: str, forms: SpokenForms) -> str:
    slash = forms.phrases["slash"]
    names = (name for name in re.split(r"[/\\]", path) if name not in ("", ".", ".."))
    parts = [_without_underscores(name) for name in names]
    if parts[:1] == ["~"]:
        parts[0] = forms.phrases["home"]
    if not parts:
        return path
    if len(parts) > _PATH_PARTS:
        return forms.phrase("path", name=parts[-1], folder=parts[-2])
    said = f" {slash} ".join(parts)
    return f"{slash} {said}" if path.startswith("/") else said


def _spoken_name(word: str) -> str | None:
    if call := _CALL.fullmatch(word):
        word = call[1]
    if _FILE.fullmatch(word):
        return _without_underscores(word)
    if entity := _ENTITY.fullmatch(word):
        if "_" in word or _ENTITY_DOMAINS.fullmatch(entity[1]):
            return _without_underscores(word.replace(".", " "))
    elif "_" in word and _NAME.fullmatch(word):
        return _without_underscores(word)
    return word if call else None


def _without_underscores(name: str) -> str:
    return UNDERSCORES.sub(" ", name).strip("_") or name
