"""Tries every toolset that is on."""

from __future__ import annotations

import asyncio
from typing import Final

from caal_node.cli.checks.check import Finding, fail, ok
from caal_node.config.settings import Settings
from caal_node.config.toolset_tables import ToolsetTable
from caal_node.core.errors import CaalError, ConfigError
from caal_node.toolsets.base import ToolsetServices
from caal_node.toolsets.registry import configured_toolsets, made_of

EACH_S: Final = 20.0
"""Seconds for what one toolset's options name."""


async def check_toolsets(settings: Settings) -> list[Finding]:
    """Return a finding for each toolset that is on."""
    on = [table for table in settings.toolsets.values() if table.enabled]
    found = list(await asyncio.gather(*map(_finding, on)))
    if all(finding.status != "fail" for finding in found):
        try:
            configured_toolsets(settings)
        except ConfigError as error:
            found.append(fail("toolsets", str(error), "Turn one of them off."))
    return found


async def _finding(table: ToolsetTable) -> Finding:
    try:
        toolset = made_of(table, ToolsetServices())
        try:
            async with asyncio.timeout(EACH_S):
                return ok(table.name, await toolset.check())
        finally:
            await toolset.aclose()
    except TimeoutError:
        return fail(table.name, f"no answer in {EACH_S:g} seconds", "See whether it is on.")
    except CaalError as error:
        return fail(table.name, str(error), f"Run: caal-node tools add {table.name}")
