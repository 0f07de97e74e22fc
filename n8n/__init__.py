"""n8n workflows as tools: discovery, input schemas, webhook execution.

    from n8n import N8nTools
    async with N8nTools(base_url, mcp_token=None, api_key=None) as n:
        await n.discover()
        await n.call(name, {...})

The package stands alone: it knows nothing of voices, models or rooms.
"""

from __future__ import annotations

from n8n.auth import BasicAuth, HeaderAuth, JwtAuth, JwtSecretAuth, WebhookAuth
from n8n.client import N8nTools
from n8n.credentials import read_credentials
from n8n.errors import CallFailure, DiscoveryFailure, Failure, N8nError
from n8n.finding import Finding
from n8n.lint import Workflow, lint, workflows_in
from n8n.parameters import typed
from n8n.progress import Progress
from n8n.results import CallResult, ResultKind
from n8n.tool import Discovery, Example, Skipped, WorkflowTool

__all__ = [
    "BasicAuth",
    "CallFailure",
    "CallResult",
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
    "lint",
    "read_credentials",
    "typed",
    "workflows_in",
]
