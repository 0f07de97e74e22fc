"""The names of `mcp_bridge`, which loads them when the first is used."""

from mcp_bridge.config.server_entry import InputAnswers
from mcp_bridge.config.servers_file import load_servers, parse_servers
from mcp_bridge.connection.manager import ServerManager, SessionPool
from mcp_bridge.connection.tool_registry import Catalogue
from mcp_bridge.core.elicitation import (
    Accepted,
    Answer,
    Declined,
    Dismissed,
    Elicitor,
    Field,
    Question,
    value_fits,
)
from mcp_bridge.core.errors import (
    BadArguments,
    BridgeError,
    CallTimeout,
    ConfigError,
    EmbeddingUnavailable,
    ServerError,
    ServerStarting,
    ServerUnavailable,
    UnknownTool,
)
from mcp_bridge.core.server_config import AskedInput, Example, Limits, NewTools, ServerConfig
from mcp_bridge.core.tools import (
    BridgeEvent,
    CallProgressed,
    ReloadReport,
    ServerStatus,
    ToolCallResult,
    ToolInfo,
    ToolsChanged,
)
from mcp_bridge.discovery.tool_search import DISCOVER, Offer, discover_tool, offer
from mcp_bridge.embedding import Embedder, MiniLM, VectorCache
from mcp_bridge.security.pins import AcceptedChange, Pins
from mcp_bridge.transports.oauth import MemoryStore, OAuth, SignIn, SignIns, takes_sign_in

__all__ = [
    "DISCOVER",
    "Accepted",
    "AcceptedChange",
    "Answer",
    "AskedInput",
    "BadArguments",
    "BridgeError",
    "BridgeEvent",
    "CallProgressed",
    "CallTimeout",
    "Catalogue",
    "ConfigError",
    "Declined",
    "Dismissed",
    "Elicitor",
    "Embedder",
    "EmbeddingUnavailable",
    "Example",
    "Field",
    "InputAnswers",
    "Limits",
    "MemoryStore",
    "MiniLM",
    "NewTools",
    "OAuth",
    "Offer",
    "Pins",
    "Question",
    "ReloadReport",
    "ServerConfig",
    "ServerError",
    "ServerManager",
    "ServerStarting",
    "ServerStatus",
    "ServerUnavailable",
    "SessionPool",
    "SignIn",
    "SignIns",
    "ToolCallResult",
    "ToolInfo",
    "ToolsChanged",
    "UnknownTool",
    "VectorCache",
    "discover_tool",
    "load_servers",
    "offer",
    "parse_servers",
    "takes_sign_in",
    "value_fits",
]
