"""Where other programs keep their servers, on Linux, macOS and Windows, as they document it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_EDITORS: Final = {"vscode": ("Code", "Code - Insiders", "VSCodium"), "cursor": ("Cursor",)}
"""Programs made of VS Code, with the folders of their settings."""
_EXTENSIONS: Final = {
    "cline": "saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
    "roo": "rooveterinaryinc.roo-cline/settings/mcp_settings.json",
}
_AT_HOME: Final = {
    "claude-code": (".claude.json",),
    "cursor": (".cursor/mcp.json",),
    "windsurf": (".codeium/windsurf/mcp_config.json", ".codeium/mcp_config.json"),
    "lm-studio": (".lmstudio/mcp.json",),
    "gemini": (".gemini/settings.json",),
    "qwen": (".qwen/settings.json",),
    "codex": (".codex/config.toml",),
    "continue": (".continue/config.yaml",),
    "amazon-q": (".aws/amazonq/mcp.json",),
    "junie": (".junie/mcp/mcp.json",),
    "copilot": (".copilot/mcp-config.json",),
    "kiro": (".kiro/settings/mcp.json",),
    "ollama": (".ollama/mcp-servers.json",),
}
_IN_PROJECT: Final = {
    "vscode": (".vscode/mcp.json",),
    "claude-code": (".mcp.json",),
    "cursor": (".cursor/mcp.json",),
    "roo": (".roo/mcp.json",),
    "zed": (".zed/settings.json",),
    "opencode": ("opencode.json", "opencode.jsonc"),
    "gemini": (".gemini/settings.json",),
    "qwen": (".qwen/settings.json",),
    "codex": (".codex/config.toml",),
    "amazon-q": (".amazonq/mcp.json",),
    "junie": (".junie/mcp/mcp.json",),
    "kiro": (".kiro/settings/mcp.json",),
}


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file that a program of this name may keep servers in; it need not be there."""

    program: str
    path: Path


def known_files(
    home: Path, project: Path, environ: Mapping[str, str], platform: str
) -> tuple[KnownFile, ...]:
    """Gives every place to look at, each once, those of the project first.

    Args:
        platform: As `sys.platform` has it.
    """
    found = [*_in_project(project), *_of_user(home, environ, platform)]
    return tuple({file.path: file for file in reversed(found)}.values())[::-1]


def _in_project(project: Path) -> Iterator[KnownFile]:
    for program, files in _IN_PROJECT.items():
        yield from (KnownFile(program, project / file) for file in files)
    blocks = sorted((project / ".continue" / "mcpServers").glob("*.y*ml"))
    yield from (KnownFile("continue", file) for file in blocks)


def _of_user(home: Path, environ: Mapping[str, str], platform: str) -> Iterator[KnownFile]:
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    programs, zed, goose = config, config / "zed", config / "goose"
    if platform == "darwin":
        programs = home / "Library" / "Application Support"
    elif platform == "win32":
        programs = Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
        zed, goose = programs / "Zed", programs / "Block" / "goose" / "config"
    yield KnownFile("claude-desktop", programs / "Claude" / "claude_desktop_config.json")
    for program, folders in _EDITORS.items():
        for user in (programs / folder / "User" for folder in folders):
            yield KnownFile(program, user / "mcp.json")
            yield KnownFile(program, user / "settings.json")
            for extension, file in _EXTENSIONS.items():
                yield KnownFile(extension, user / "globalStorage" / file)
    yield KnownFile("zed", zed / "settings.json")
    yield KnownFile("goose", goose / "config.yaml")
    for name in ("opencode.json", "opencode.jsonc"):
        yield KnownFile("opencode", config / "opencode" / name)
    if codex := environ.get("CODEX_HOME"):
        yield KnownFile("codex", Path(codex) / "config.toml")
    for program, files in _AT_HOME.items():
        yield from (KnownFile(program, home / file) for file in files)
