"""The toolset `memory`: what people ask the agent to remember of them."""

from caal_node.toolsets.memory.toolset import Memory, MemoryOptions

__all__ = ["Memory", "MemoryOptions"]
