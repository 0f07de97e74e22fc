"""The option of a toolset that takes folders: a list, or a line with commas as it is typed."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator

from caal_node.toolsets.base import OptionPath


def _parts(value: Any) -> Any:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


Folders: TypeAlias = Annotated[tuple[OptionPath, ...], BeforeValidator(_parts)]
