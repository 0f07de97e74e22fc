"""Entries of a configuration that look like a server's, and run something else."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcp_bridge import parse_servers
from mcp_bridge.core.errors import ServerUnavailable
from mcp_bridge.transports.process import spawn
from tests.attack.harness import Ending, Probe, attack
from tests.stand_ins.variables import DANGEROUS

_STARTED_S: Final = 1.5
"""The time that a program which was let through has to leave its mark."""
_MARK: Final = "MARK"
"""Stands in the entries below for the file that must not be made."""
_RAN: Final = "(it ran) "


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry, written as a line: no shell reads it."""

    line: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """What lies in its working folder; programs where they begin with `#!`."""


_LOADED: Final = {"x.js": 'require("fs").writeFileSync("MARK","")'}
CODE: Final = (
    Entry(
        'node --test-reporter \'data:text/javascript,import fs from "fs";'
        'fs.writeFileSync("MARK","");export default async function*(){}\' --test x.js'
    ),
    Entry('node -e \'require("fs").writeFileSync("MARK","")\''),
    Entry('node --eval=\'require("fs").writeFileSync("MARK","")\''),
    Entry("node --require ./x.js y.js", files=_LOADED),
    Entry("node -r./x.js y.js", files=_LOADED),
    Entry("npx --call='touch MARK'"),
    Entry("npx --offline /usr/bin/touch MARK"),
    Entry('python3 -Ic \'open("MARK","w")\''),
    Entry('python3 -X dev -c \'open("MARK","w")\''),
    Entry('python3 -m timeit -n1 -r1 \'open("MARK","w")\''),
    Entry('python3 STDLIB/timeit.py -n1 -r1 \'open("MARK","w")\''),
    Entry("perl -e 'open(F,\">MARK\")'"),
)
TOOLS: Final = (
    Entry("gdb --batch --ex 'shell touch MARK'"),
    Entry("git ls-remote '--upload-pack=touch MARK;' ."),
    Entry("git clone -u 'touch MARK;' file:///nothing x"),
    Entry("git -c alias.x='!touch MARK' x"),
    Entry("git -C repo rebase --exec 'touch MARK' HEAD~1"),
    Entry("gcc -wrapper ./w x.c", files={"x.c": "", "w": "#!/bin/sh\ntouch MARK\n"}),
    Entry("cmake -E env touch MARK"),
    Entry("perf stat touch MARK"),
    Entry("capsh -- -c 'touch MARK'"),
    Entry("sg root -c 'touch MARK'"),
    Entry("logsave x.log touch MARK"),
    Entry("start-stop-daemon --start --startas /usr/bin/touch --name x -- MARK"),
    Entry("run-parts --regex '^x$' .", files={"x": "#!/bin/sh\ntouch MARK\n"}),
    Entry("vim.basic -es -c '!touch MARK' -c q"),
    Entry("apt-get -o 'APT::Update::Pre-Invoke::=touch MARK' update"),
    Entry("dpkg --pre-invoke='touch MARK' --configure -a"),
    Entry("nice touch MARK"),
    Entry("env -S 'touch MARK'"),
    Entry("make -f x run", files={"x": "run:\n\ttouch MARK\n"}),
    Entry("sh -c 'touch MARK'"),
    Entry("busybox touch MARK"),
    Entry("/lib64/ld-linux-x86-64.so.2 /usr/bin/touch MARK"),
)
BRIDGE: Final = tuple(
    Entry(f"{launcher} serve --port 0 -- {started}")
    for launcher in (
        "PYTHON-BIN/mcp-bridge",
        "PYTHON -m mcp_bridge.serve",
        "PYTHON PYTHON-BIN/mcp-bridge",
    )
    for started in (
        "sh -c 'touch MARK; exec cat'",
        "perf stat touch MARK",
        'python3 -c \'open("MARK","w")\'',
    )
)
_SCRIPT: Final = {"server": "#!/bin/sh\nexec gcc -c x.c\n", "x.c": "int x;\n"}
_BASH: Final = {"server": "#!/bin/bash\ntrue\n", "x": "touch MARK\n"}
_NODE: Final = {"y.js": "", "x.js": 'require("fs").writeFileSync("MARK","")'}
VARIABLES: Final = (
    Entry("./server", {"COMPILER_PATH": "."}, {**_SCRIPT, "cc1": "#!/bin/sh\ntouch MARK\n"}),
    Entry("./server", {"BASH_ENV": "./x"}, _BASH),
    Entry("./server", {"PATH": "."}, {**_SCRIPT, "gcc": "#!/bin/sh\n/bin/touch MARK\n"}),
    Entry("node y.js", {"NODE_OPTIONS": "--require ./x.js"}, _NODE),
    Entry("npx x", {"npm_config_call": "touch MARK"}),
    Entry(
        "python3 y.py",
        {"PYTHONWARNINGS": "ignore::x.y", "PYTHONPATH": "."},
        {"y.py": "", "x.py": "open('MARK','w')"},
    ),
)
LINKS: Final = (
    Entry("./server stat touch MARK", files={"server": "-> /usr/bin/perf"}),
    Entry("./node touch MARK", files={"node": "-> /usr/bin/nohup"}),
    Entry("./server -c 'touch MARK'", files={"server": "-> /bin/sh"}),
    Entry("./node ./x.js", files={"node": "-> /bin/sh", "x.js": "touch MARK\n"}),
    Entry("./one -c 'touch MARK'", files={"one": "-> two", "two": "-> /bin/bash"}),
    Entry('./server -c \'open("MARK","w")\'', files={"server": "-> PYTHON"}),
    Entry("./npx -c 'touch MARK'", files={"npx": "-> sh", "sh": "-> /bin/dash"}),
)


def _filled(text: str, folder: Path) -> str:
    for name, value in (
        ("PYTHON-BIN", str(Path(sys.executable).parent)),
        ("PYTHON", sys.executable),
        ("STDLIB", str(Path(shlex.__file__).parent)),
        (_MARK, str(folder / "marked")),
    ):
        text = text.replace(name, value)
    return text


def _written(entry: Entry, folder: Path) -> dict[str, Any]:
    for name, text in entry.files.items():
        path = folder / name
        if text.startswith("-> "):
            path.symlink_to(_filled(text[3:], folder))
        else:
            path.write_text(_filled(text, folder), encoding="utf-8")
            path.chmod(0o755)
    command, *args = [_filled(word, folder) for word in shlex.split(entry.line)]
    env = dict(entry.env)
    return {"command": command, "args": args, "cwd": str(folder), **({"env": env} if env else {})}


async def _objection(entry: Entry) -> str:
    """Reads and starts one entry. Gives what its owner is told, or whether its code ran."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        document = json.dumps({"peer": _written(entry, folder)})
        (config,) = await asyncio.to_thread(parse_servers, document, environ={})
        if config.fault:
            return config.fault if '"allow": [' in config.fault else ""
        try:
            process = await spawn(config)
        except ServerUnavailable as error:  # not on this machine
            return str(error)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STARTED_S):
                while not (folder / "marked").exists():  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.05)
        ran = (folder / "marked").exists()
        await process.stop()
        return _RAN if ran else ""


async def _refused(probe: Probe, entries: Iterable[Entry]) -> Ending:
    told: list[str] = []
    through: list[str] = []

    async def all_of_them() -> None:
        for entry in entries:
            said = await _objection(entry)
            if said in ("", _RAN):
                through.append(f"{said}{entry.line} {' '.join(entry.env)}")
            else:
                told.append(said)

    await probe.watch(all_of_them)
    heard = "let through: " + "; ".join(through) if through else told[0]
    return Ending(kept=bool(told) and not through, heard=heard)


@attack("programs", "code among the arguments of node, npx, python", deadline_s=6, tries=1)
async def code(probe: Probe) -> Ending:
    return await _refused(probe, CODE)


@attack("programs", "a tool of the system runs what its arguments say", deadline_s=6, tries=1)
async def tools(probe: Probe) -> Ending:
    return await _refused(probe, TOOLS)


@attack("programs", "our own bridge is told to serve a shell", deadline_s=6, tries=1)
async def bridge(probe: Probe) -> Ending:
    return await _refused(probe, BRIDGE)


@attack("programs", "a variable brings code beside a harmless command", deadline_s=6, tries=1)
async def variables(probe: Probe) -> Ending:
    return await _refused(probe, VARIABLES)


@attack("programs", "a tool behind links and under a launcher's name", deadline_s=6, tries=1)
async def links(probe: Probe) -> Ending:
    return await _refused(probe, LINKS)


@attack("programs", "every variable that a loader, runtime or tool reads", deadline_s=6, tries=1)
async def every_variable(probe: Probe) -> Ending:
    passed: list[str] = []

    async def all_of_them() -> None:
        for name, value in DANGEROUS.items():
            entry = {"command": "uvx", "args": ["mcp-server-time"], "env": {name: value}}
            document = json.dumps({"peer": entry})
            (config,) = await asyncio.to_thread(parse_servers, document, environ={})
            if not config.fault:
                passed.append(name)

    await probe.watch(all_of_them)
    heard = f"{len(passed)} of {len(DANGEROUS)} passed: {' '.join(passed)}"
    return Ending(kept=not passed and bool(DANGEROUS), heard=heard)
