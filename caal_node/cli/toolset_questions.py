"""Asks a person for the options of a toolset, and reads what is typed as TOML has it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast, get_args, get_origin

import typer
from pydantic import SecretStr, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from caal_node.core.errors import ConfigError
from caal_node.toolsets.base import BASE, ConfiguredToolset
from caal_node.toolsets.registry import what_is_wrong

VARIABLE: Final = "${"
"""What a value begins with that names a variable of `.env`."""
_YES: Final = frozenset({"true", "yes", "on"})
_NO: Final = frozenset({"false", "no", "off"})


def asked_options(
    kind: type[ConfiguredToolset], known: Mapping[str, Any], given: Collection[str] = ()
) -> dict[str, Any]:
    """Ask for every option that has a question, a line can answer, and is not `given` already.

    An answer that does not fit is asked for again, so that the others need not be typed anew.

    Returns:
        The options whose answer is not the default that was shown.

    Raises:
        typer.Abort: the person wants no more, or nobody is there.
    """
    answers: dict[str, Any] = {}
    for option, field in kind.Options.model_fields.items():
        if option in given or not field.description or _is_table(field):
            continue
        if is_secret(field):
            must = field.is_required() and option not in known
            typed = typer.prompt(
                field.description, hide_input=True, default=None if must else "", show_default=False
            )
            if typed.strip():
                answers[option] = typed.strip()
            continue
        default = known.get(option, None if field.is_required() else field.get_default())
        shown = "" if default is None else _shown(default)
        must = field.is_required() and not shown

        def fitting(
            typed: str, field: FieldInfo = field, shown: str = shown, must: bool = must
        ) -> str:
            text = typed.strip()
            if text != shown or must:
                _refuse_misfit(field, text, must=must)
            return text

        text = typer.prompt(field.description, default=None if must else shown, value_proc=fitting)
        if text != shown:
            answers[option] = typed_value(field, text)
    return answers


def missing_option(kind: type[ConfiguredToolset], options: Mapping[str, Any]) -> str:
    """Return the first option that has to be answered and is not, or ""."""
    fields = kind.Options.model_fields.items()
    return next((name for name, each in fields if each.is_required() and name not in options), "")


def _refuse_misfit(field: FieldInfo, text: str, *, must: bool) -> None:
    if must and not text:
        raise typer.BadParameter("this has to be answered")
    if text.startswith(VARIABLE):
        return
    try:
        TypeAdapter[Any](field.rebuild_annotation()).validate_python(
            typed_value(field, text), context={BASE: Path.cwd()}
        )
    except ValidationError as error:
        raise typer.BadParameter(what_is_wrong(error)) from None
    except ConfigError as error:
        raise typer.BadParameter(str(error)) from None


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, cast("Sequence[object]", value)))
    return str(value).lower() if isinstance(value, bool) else str(value)


def typed_value(field: FieldInfo, text: str) -> Any:
    """Return what a person typed as TOML has it; whether it fits is the options' to say."""
    if text[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except ValueError:
            return text
    kinds = _kinds(field.annotation)
    if any(get_origin(kind) in (list, tuple) for kind in kinds):
        return [part for each in text.split(",") if (part := each.strip())]
    if bool in kinds and text.casefold() in _YES | _NO:
        return text.casefold() in _YES
    for number in (int, float):
        if number in kinds:
            try:
                return number(text)
            except ValueError:
                continue
    return text


def _kinds(annotation: Any) -> tuple[Any, ...]:
    parts = [annotation, *get_args(annotation)]
    return tuple(part for part in parts if part is not type(None))


def is_secret(field: FieldInfo) -> bool:
    """Say whether the option is one that neither screen nor `caal.toml` may show."""
    return SecretStr in _kinds(field.annotation)


def _is_table(field: FieldInfo) -> bool:
    return any(get_origin(kind) in (dict, Mapping) for kind in _kinds(field.annotation))
