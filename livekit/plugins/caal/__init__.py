"""caal-node where LiveKit's plugins are: `from livekit.plugins import caal`.

    session = AgentSession(llm=caal.LLM("qwen3:8b"), ...)

The names are those of `caal_node`; importing this registers the plugin.
"""

from caal_node import LLM, CaalAgent, __version__
from caal_node.livekit_plugin import register

__all__ = ["LLM", "CaalAgent", "__version__"]

register()
