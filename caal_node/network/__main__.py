"""Runs a program of Python that is kept to the same networks as the process that starts it.

python -m caal_node.network POLICY[;POLICY...] -m MODULE ARGUMENT...
python -m caal_node.network POLICY[;POLICY...] -c CODE ARGUMENT...
"""

from __future__ import annotations

import runpy
import sys

from caal_node.network.guard import enforce
from caal_node.network.policy import parse_policy


def main() -> None:
    _, policies, kind, program, *arguments = sys.argv
    for words in policies.split(";"):
        enforce(parse_policy(words))
    sys.argv = [program if kind == "-m" else kind, *arguments]
    if kind == "-m":
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102 - as python -c


main()
