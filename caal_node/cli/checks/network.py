"""This check says what of the settings CAAL_NETWORK refuses, and what it cannot hold."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.request import getproxies_environment

import mcp_bridge
from caal_node import weights
from caal_node.cli.checks import Finding, fail, in_thread, ok, warn
from caal_node.config.mcp_file import load_mcp_servers
from caal_node.config.settings import Settings
from caal_node.core.addresses import ModelReference
from caal_node.core.errors import ConfigError
from caal_node.network.rooms import outside
from caal_node.weights.fetch import Weight
from caal_node.weights.gguf import find_gguf, needed

NETWORK: Final = "network"
HUB: Final = "https://huggingface.co"
UNSEEN: Final = ("grpc", "pycurl", "curl_cffi", "aiodns", "hf_xet", "primp", "rnet")
"""Libraries that connect, or look up names, past Python's sockets. Where a limit is set, nothing
here loads them."""


async def check_network(settings: Settings) -> Sequence[Finding]:
    if settings.network.is_open:
        return [ok(NETWORK, "not limited", "CAAL_NETWORK=local keeps this process to the machine.")]
    return await in_thread(lambda: list(_findings(settings)))


def _findings(settings: Settings) -> Iterator[Finding]:
    shown = settings.network.shown
    yield ok(NETWORK, f"{shown}: connections of this process to anywhere else are refused")
    for what, url, fix in _addresses(settings):
        if (why := _outside(settings, url)) is not None:
            yield fail(f"{NETWORK} {what}", why, f"Add it to CAAL_NETWORK, or {fix}.")
    yield from _models_elsewhere(settings)
    yield from _missing_weights(settings)
    yield from _own_processes(settings)
    if proxies := sorted(set(getproxies_environment()) - {"no"}):
        found = f"the proxies for {', '.join(proxies)} are not used: what they reach is unknown"
        yield warn(NETWORK, found, "Unset HTTP_PROXY and the like, or set CAAL_NETWORK=any.")
    if unseen := [name for name in UNSEEN if name in sys.modules]:
        found = f"{', '.join(unseen)} is loaded, and connects past Python's sockets"
        yield warn(NETWORK, found, "See what loads it; docs/security.md says what can hold it.")


def _outside(settings: Settings, url: str) -> str | None:
    try:
        return outside(settings.network, url)
    except OSError:  # a name that leads nowhere, of which the check of its part tells
        return None


def _addresses(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Yield each address of the settings: what it is of, the URL, and what else could be done."""
    fix = "set CAAL_BASE_URL or OLLAMA_HOST to one within"
    for model in (settings, *map(settings.with_model, settings.fallbacks.models)):
        if model.api not in ("embedded", "livekit"):
            yield f"model {model.model}", model.model_address, fix
        fix = "take it out of CAAL_FALLBACKS"
    for url in settings.model_servers:
        yield "model server", url, "take it out of CAAL_MODEL_SERVERS"
    if isinstance(settings.embedding, ModelReference):
        address = settings.with_model(settings.embedding).model_address
        yield "embedding", address, "set CAAL_EMBEDDING=minilm"
    if settings.n8n_url:
        yield "n8n", settings.n8n_url, "unset N8N_URL"
    if settings.livekit_url:
        yield "livekit", settings.livekit_url, "set LIVEKIT_URL to one within"
    for server in _servers(settings):
        if server.url:
            yield f"mcp {server.name}", server.url, f'set "enabled": false for {server.name}'


def _servers(settings: Settings) -> Sequence[mcp_bridge.ServerConfig]:
    try:
        servers = load_mcp_servers(settings.mcp_servers, missing_ok=True)
    except mcp_bridge.ConfigError:  # the check of MCP tells of it
        return ()
    return [server for server in servers if server.enabled and not server.fault]


def _models_elsewhere(settings: Settings) -> Iterator[Finding]:
    for model in (settings, *map(settings.with_model, settings.fallbacks.models)):
        if model.api == "livekit":
            found = (
                f"{model.model} is a plugin, which is kept in as far as it uses Python's sockets"
            )
            yield warn(NETWORK, found, "See that it has no C or Rust client (docs/security.md).")
        elif model.api == "ollama" and model.model.endswith(("-cloud", ":cloud")):
            found = f"{model.model} runs in Ollama's cloud, which this machine's Ollama asks"
            yield fail(NETWORK, found, "Set CAAL_MODEL to one that runs here.")


def _missing_weights(settings: Settings) -> Iterator[Finding]:
    for each in needed(settings):
        if not each.usable or _is_here(each.what):
            continue
        if (why := _outside(settings, os.environ.get("HF_ENDPOINT") or HUB)) is not None:
            found = f"{each.title} is not in the cache, and cannot be fetched: {why}"
            yield fail(NETWORK, found, "Fetch it first: CAAL_NETWORK=any caal-node download-files")


def _is_here(what: Weight | str) -> bool:
    if isinstance(what, Weight):
        return weights.present(what) is not None
    try:
        find_gguf(what)
    except ConfigError:
        return False
    return True


def _own_processes(settings: Settings) -> Iterator[Finding]:
    names = [server.name for server in _servers(settings) if server.transport == "stdio"]
    if names:
        found = f"{', '.join(names)}: a process of its own, which can connect to anywhere"
        fix = "Its package runner may fetch nothing; only the system can limit the rest."
        yield warn(f"{NETWORK} mcp", found, fix)
