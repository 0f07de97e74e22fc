"""Tries every toolset that is on."""

from __future__ import annotations

import asyncio
from datetime import tzinfo
from typing import Final

from caal_node.cli.checks.check import Finding, fail, ok
from caal_node.config.settings import Settings
from caal_node.config.toolset_tables import ToolsetTable
from caal_node.core.errors import CaalError, ConfigError
from caal_node.toolsets.base import LOCAL_ZONE, ToolsetServices
from caal_node.toolsets.registry import checked, configured_toolsets, made_of

EACH_S: Final = 20.0
"""Seconds for what one toolset's options name."""


async def check_toolsets(settings: Settings) -> list[Finding]:
    """Return a finding for each toolset that is on."""
    on = [table for table in settings.toolsets.values() if table.enabled]
    zone = settings.timezone or LOCAL_ZONE
    found = list(await asyncio.gather(*(_finding(table, zone) for table in on)))
    if all(finding.status != "fail" for finding in found):
        try:
            configured_toolsets(settings)
        except ConfigError as error:
            found.append(fail("toolsets", str(error), "Turn one of them off."))
    return found


async def _finding(table: ToolsetTable, zone: tzinfo) -> Finding:
    try:
        toolset = made_of(table, ToolsetServices(timezone=zone))
        return ok(table.name, await checked(toolset, EACH_S))
    except TimeoutError:
        return fail(table.name, f"no answer in {EACH_S:g} seconds", "See whether it is on.")
    except ConfigError as error:
        return fail(table.name, str(error), f"Run: caal-node tools add {table.name}")
    except CaalError as error:  # its options are right, and what they name does not work
        return fail(table.name, str(error), "See whether it is on, and can be reached from here.")
