"""n8n workflows as tools: discovery, input schemas, webhook execution.

    from n8n import N8nTools
    async with N8nTools(base_url, mcp_token=None, api_key=None) as n:
        await n.discover()
        await n.call(name, {...})

The package stands alone: it knows nothing of voices, models or rooms.
"""

from __future__ import annotations

from n8n.calls.call import (
    BasicAuth,
    HeaderAuth,
    JwtAuth,
    JwtSecretAuth,
    WebhookAuth,
    read_credentials,
)
from n8n.calls.results import CallResult, Progress, ResultKind
from n8n.client import N8nTools
from n8n.core.errors import CallFailure, DiscoveryFailure, Failure, N8nError
from n8n.core.workflow_tool import Discovery, Example, Skipped, Workflow, WorkflowTool
from n8n.notes.parameter import typed
from n8n.workflow_lint import Check, Finding, check, lint, workflows_in

__all__ = [
    "BasicAuth",
    "CallFailure",
    "CallResult",
    "Check",
    "Discovery",
    "DiscoveryFailure",
    "Example",
    "Failure",
    "Finding",
    "HeaderAuth",
    "JwtAuth",
    "JwtSecretAuth",
    "N8nError",
    "N8nTools",
    "Progress",
    "ResultKind",
    "Skipped",
    "WebhookAuth",
    "Workflow",
    "WorkflowTool",
    "check",
    "lint",
    "read_credentials",
    "typed",
    "workflows_in",
]
