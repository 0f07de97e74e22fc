"""Registers caal-node with LiveKit, as importing one of LiveKit's own plugins does.

LiveKit then names it when a worker starts, loads it before a room needs it, and has it fetch its
files: `python -m livekit.agents download-files`. All that is logged is under the logger
`caal_node`, the bridge's own loggers too.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from livekit.agents import Plugin

from caal_node import __version__

PACKAGE: Final = "livekit.plugins.caal"
logger = logging.getLogger("caal_node")


class CaalPlugin(Plugin):
    """What LiveKit knows of this package."""

    def __init__(self) -> None:
        super().__init__(PACKAGE, __version__, PACKAGE, logger)

    def download_files(self) -> None:
        """Fetch the weights that the settings need and the cache lacks.

        Raises:
            ConfigError: a setting is wrong, or a weight cannot be fetched.
        """
        # Most who have the plugin never fetch anything.
        from caal_node.config.process_guard import guard_process
        from caal_node.weights.gguf import fetch_needed

        fetch_needed(guard_process())


def register() -> None:
    """Register the plugin, once. In another thread than the main one nothing is done.

    LiveKit refuses plugins there, and its error would end whoever imports a model in a thread.
    """
    if threading.current_thread() is not threading.main_thread():
        logger.debug("not registered as a plugin: imported outside of the main thread")
    elif not any(isinstance(plugin, CaalPlugin) for plugin in Plugin.registered_plugins):
        Plugin.register_plugin(CaalPlugin())


# `mcp_bridge` knows nothing of this package, but whoever sets our level means its logs as well.
logging.getLogger("mcp_bridge").parent = logger
