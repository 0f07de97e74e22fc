"""Interpreters of JavaScript, and which of their options bring code: from their `--help`."""

from __future__ import annotations

from typing import Final

from mcp_bridge.security import node_options
from mcp_bridge.security.interpreter import Interpreter

NODE: Final = Interpreter(
    "epr", node_options.CODE, "C", node_options.VALUED,
    flags="chiv", long_flags=node_options.FLAGS, words=("-",),
)  # fmt: skip
TS: Final = Interpreter(
    "epr", node_options.CODE, "CPO",
    (*node_options.VALUED, "--tsconfig", "--project", "--compiler-options", "--cwd-mode"),
    flags="chivTHsD",
    long_flags=(*node_options.FLAGS, "--transpile-only", "--esm", "--swc", "--files", "--pretty",
                "--type-check", "--log-error", "--skip-project", "--clear-screen"),
    words=("-",), runs=("watch",),
)  # fmt: skip
NODEMON: Final = Interpreter(
    "prx", (*node_options.CODE, "--exec"), "ewdisC",
    (*node_options.VALUED, "--ext", "--watch", "--delay", "--ignore", "--signal", "--config",
     "--cwd", "--polling-interval"),
    flags="chvqLVIH", mixed=True,
    long_flags=(*node_options.FLAGS, "--quiet", "--verbose", "--legacy-watch", "--on-change-only",
                "--exitcrash"),
)  # fmt: skip
BUN: Final = Interpreter(
    "epr",
    ("--eval", "--print", "--require", "--import", "--preload", "--inspect", "--inspect-brk",
     "--inspect-wait", "--shell", "--env-file"),
    "cdluF",
    ("--config", "--cwd", "--port", "--conditions", "--tsconfig-override", "--define", "--loader",
     "--elide-lines", "--main-fields", "--filter", "--install", "--extension-order", "--drop",
     "--jsx-factory", "--jsx-fragment", "--jsx-import-source", "--jsx-runtime", "--title",
     "--max-http-header-size", "--dns-result-order", "--user-agent", "--backend"),
    flags="bhiv",
    long_flags=("--no-*", "--bun", "--watch", "--hot", "--smol", "--silent", "--if-present",
                "--prefer-offline", "--prefer-latest", "--expose-gc", "--zero-fill-buffers",
                "--throw-deprecation", "--use-system-ca", "--version", "--revision", "--help"),
    words=("exec", "repl", "-"), runs=("run",),
)  # fmt: skip
DENO: Final = Interpreter(
    "e",
    ("--eval", "--preload", "--require", "--import", "--inspect", "--inspect-brk",
     "--inspect-wait", "--env-file"),
    "cL",
    ("--config", "--import-map", "--lock", "--cert", "--location", "--seed", "--log-level",
     "--ext", "--port", "--host", "--minimum-dependency-age"),
    flags="AERSNWIPqhrf",
    long_flags=("--no-*", "--allow-*", "--deny-*", "--ignore-*", "--unstable*", "--watch*",
                "--quiet", "--reload", "--cached-only", "--check", "--frozen", "--vendor",
                "--node-modules-dir", "--permission-set", "--v8-flags", "--unsafely-ignore*",
                "--coverage", "--parallel", "--tunnel", "--help", "--version"),
    words=("eval", "repl", "-"), runs=("run", "serve", "task", "test", "bench", "x"),
)  # fmt: skip
