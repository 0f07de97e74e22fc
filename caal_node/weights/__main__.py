"""`python -m caal_node.weights [KEY ...]` fetches weights; with no key, it lists them.

Beside the keys, a GGUF file of the model hub may be named: `owner/repository/file.gguf`.
"""

from __future__ import annotations

import sys

from rich.console import Console

from caal_node.core.errors import ConfigError
from caal_node.weights import CATALOGUE, ensure, present
from caal_node.weights.gguf import ensure_gguf, names_model


def main(keys: list[str]) -> int:
    console = Console()
    known = {weight.key: weight for weight in CATALOGUE}
    if unknown := [key for key in keys if key not in known and not names_model(key)]:
        console.print(f"no weight named {unknown[0]!r}; there are: {', '.join(known)}")
        return 2
    if not keys:
        for weight in CATALOGUE:
            there = present(weight) or "not fetched"
            size = f"{weight.size / 1e6:,.0f} MB"
            console.print(f"{weight.key}  {size}  {weight.licence}  {there}", soft_wrap=True)
    try:
        for key in keys:
            weight = known.get(key)
            path = ensure(weight, console=console) if weight else ensure_gguf(key, console=console)
            console.print(str(path), soft_wrap=True)
    except ConfigError as error:
        console.print(str(error), style="red", markup=False, soft_wrap=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
