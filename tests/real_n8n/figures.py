"""How many requests and how long discovery takes, and how much of the inputs it finds."""

from __future__ import annotations

import time
from collections import Counter

from n8n import Discovery, N8nTools


async def measured(label: str, tools: N8nTools) -> Discovery:
    """Print one discovery. Wall time: most of it is n8n's own."""
    began = time.perf_counter()
    found = await tools.discover()
    took_ms = round((time.perf_counter() - began) * 1000)
    origins = Counter(origin for tool in found.tools for origin in tool.origins.values())
    written = sum(origins[kind] for kind in ("schema", "param", "prose"))
    print(
        f"{label}: {len(found.tools)} tools by {found.source} in {found.requests} requests, "
        f"{took_ms} ms; {origins.total()} parameters, {origins.total() - written} without "
        f"structured notes ({dict(origins)}); {len(found.skipped)} left out"
    )
    for notice in found.notices:
        print(f"  {notice}")
    return found
