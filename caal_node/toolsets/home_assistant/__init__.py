"""Home Assistant's devices by four tools, in place of one for each device or service.

`toolset.py` has the tools. `devices.py`, `naming.py`, `values.py` and `spoken_states.py` are pure;
`websocket_link.py` and `mcp_link.py` are the two ways to reach it.
"""

from caal_node.toolsets.home_assistant.toolset import HomeAssistant, HomeAssistantOptions

__all__ = ["HomeAssistant", "HomeAssistantOptions"]
