"""The tiers that live outside the agent: n8n's workflows and MCP's servers.

The agent's own methods are the first tier; they are LiveKit function tools already, and
`caal_node.tools.sources.methods` sends them through the same pipeline.
"""
