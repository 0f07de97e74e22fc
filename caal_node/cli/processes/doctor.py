"""Runs `caal-node doctor` as a child process: some of its checks hold the loop for seconds."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ValidationError

from caal_node.cli.processes.livekit_server import PARENT_WATCHDOG
from caal_node.models import child_process
from caal_node.page.findings import CannotLook, ShownFinding

MAX_BYTES: Final = 1 << 20
"""Bytes that it may print; a finding has some 700 at most."""
_DOCTOR: Final = ("-m", "caal_node.cli", "doctor", "--json")


class _Printed(BaseModel):
    checks: list[ShownFinding]


async def doctor_findings(
    folder: Path, env: Mapping[str, str], program: tuple[str, ...] = _DOCTOR
) -> list[ShownFinding]:
    """Return what it finds in a folder. It ends with this call, also where that is cancelled.

    Args:
        env: Variables beside those of this process.
        program: What Python runs.

    Raises:
        CannotLook: it printed no findings.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", str(PARENT_WATCHDOG)),
        *(sys.executable, *program),
        cwd=folder,
        env={**os.environ, **env},
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        limit=MAX_BYTES,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        # One line of JSON, at its end.
        return _Printed.model_validate_json(await process.stdout.readline()).checks
    except (ValidationError, ValueError):
        raise CannotLook("The checks gave no findings; run: caal-node doctor") from None
    finally:
        await child_process.end(process)
