"""Interpreters, and which of their options bring code: from their manual pages and `--help`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from mcp_bridge.security.interpreters import Interpreter

_NODE: Final = Interpreter(
    "epr",
    ("--eval", "--print", "--require", "--import", "--loader", "--experimental-loader",
     "--env-file", "--env-file-if-exists", "--inspect", "--inspect-brk", "--inspect-wait",
     "--inspect-port", "--debug-port", "--experimental-config-file",
     "--experimental-default-config-file",
     "--openssl-config", "--snapshot-blob", "--run"),
    "C",
    ("--conditions", "--title", "--input-type", "--experimental-default-type", "--icu-data-dir",
     "--diagnostic-dir", "--disable-proto", "--disable-warning", "--dns-result-order",
     "--heapsnapshot-signal", "--heapsnapshot-near-heap-limit", "--max-http-header-size",
     "--redirect-warnings", "--secure-heap", "--secure-heap-min", "--stack-trace-limit",
     "--tls-cipher-list", "--tls-keylog", "--trace-event-categories", "--trace-event-file-pattern",
     "--trace-require-module", "--unhandled-rejections", "--v8-pool-size", "--watch-path",
     "--watch-kill-signal", "--localstorage-file", "--cpu-prof-dir", "--cpu-prof-name",
     "--cpu-prof-interval", "--heap-prof-dir", "--heap-prof-name", "--heap-prof-interval",
     "--inspect-publish-uid", "--report-dir", "--report-directory", "--report-filename",
     "--report-signal", "--build-snapshot-config", "--experimental-sea-config",
     "--max-old-space-size", "--max-old-space-size-percentage", "--allow-fs-read",
     "--allow-fs-write",
     "--network-family-autoselection-attempt-timeout", "--es-module-specifier-resolution",
     "--test-concurrency", "--test-name-pattern", "--test-reporter", "--test-reporter-destination",
     "--test-shard", "--test-timeout", "--test-skip-pattern", "--test-coverage-include",
     "--test-coverage-exclude", "--test-isolation", "--test-global-setup"),
    words=("-",),
)  # fmt: skip
_TS: Final = Interpreter(
    "epr",
    ("--eval", "--print", "--require", "--import", "--loader", "--env-file", "--env-file-if-exists",
     "--inspect", "--inspect-brk"),
    "CPO",
    ("--conditions", "--tsconfig", "--project", "--compiler-options"),
    words=("-",),
)  # fmt: skip
_BUN: Final = Interpreter(
    "epr",
    ("--eval", "--print", "--require", "--import", "--preload", "--inspect", "--inspect-brk",
     "--inspect-wait", "--shell", "--env-file"),
    "cdl",
    ("--config", "--cwd", "--port", "--conditions", "--tsconfig-override", "--define", "--loader",
     "--elide-lines", "--main-fields", "--filter"),
    words=("exec", "repl", "-"),
    runs=("run",),
)  # fmt: skip
_DENO: Final = Interpreter(
    "",
    ("--preload", "--require", "--import", "--inspect", "--inspect-brk", "--inspect-wait",
     "--env-file"),
    "cLr",
    ("--config", "--import-map", "--lock", "--cert", "--location", "--seed", "--log-level",
     "--ext"),
    words=("eval", "repl", "-"),
    runs=("run", "serve"),
)  # fmt: skip
_PYTHON: Final = Interpreter(
    "ci", (), "WX", ("--check-hash-based-pycs",), module="m",
    modules=("timeit", "code", "pdb", "asyncio", "idlelib", "pip", "trace", "profile", "cProfile",
             "doctest", "runpy"),
    words=("-",),
)  # fmt: skip
_SHELL: Final = Interpreter(
    "cis", ("--command", "--init-command", "--init-file", "--rcfile", "--interactive"), "oO",
    ("--features", "--profile"), words=("-",),
)  # fmt: skip
_POWERSHELL: Final = Interpreter(
    longs=("-command", "-c", "-commandwithargs", "-cwa", "-encodedcommand", "-e", "-ec",
           "-encodedarguments", "-interactive", "-noexit"),
    long_valued=("-executionpolicy", "-ex", "-ep", "-windowstyle", "-w", "-inputformat",
                 "-outputformat", "-workingdirectory", "-wd", "-configurationname",
                 "-settingsfile", "-version"),
    script="f", words=("-",), loose=True,
)  # fmt: skip
_PERL: Final = Interpreter("eEMmdx", (), "ICF", words=("-",))
_RUBY: Final = Interpreter(
    "er", ("--require", "--eval"), "ICEKFWT", ("--encoding", "--external-encoding"), words=("-",)
)
_PHP: Final = Interpreter(
    "rRBEadzF",
    ("--run", "--process-begin", "--process-code", "--process-end", "--process-file",
     "--interactive", "--define", "--zend-extension"),
    "cSt", ("--php-ini", "--server", "--docroot"), script="f", words=("-",),
)  # fmt: skip
_LUA: Final = Interpreter("eli", words=("-",))

INTERPRETERS: Final[Mapping[str, Interpreter]] = MappingProxyType(
    {
        **dict.fromkeys(("node", "nodejs", "iojs", "electron"), _NODE),
        **dict.fromkeys(("tsx", "ts-node", "ts-node-esm", "nodemon", "jiti"), _TS),
        "bun": _BUN,
        "deno": _DENO,
        **dict.fromkeys(("python", "pythonw", "pypy", "py", "ipython", "micropython"), _PYTHON),
        **dict.fromkeys(
            ("sh", "bash", "rbash", "dash", "zsh", "ksh", "mksh", "csh", "tcsh", "fish", "ash",
             "hush", "nu", "elvish", "xonsh", "yash"),
            _SHELL,
        ),
        **dict.fromkeys(("pwsh", "powershell", "pwsh-preview"), _POWERSHELL),
        "perl": _PERL,
        **dict.fromkeys(("ruby", "jruby", "irb"), _RUBY),
        **dict.fromkeys(("php", "php-cgi"), _PHP),
        **dict.fromkeys(("lua", "luajit"), _LUA),
        "rscript": Interpreter("e", (), stdin=False),
        "r": Interpreter("ef", ("--eval", "--file", "--args"), stdin=True),
        "julia": Interpreter("eEL", ("--eval", "--print", "--load"), "JptHC", words=("-",)),
        "elixir": Interpreter("er", ("--eval", "--rpc-eval", "--erl", "--require"), "S"),
        "erl": Interpreter(longs=("-eval", "-run", "-s"), stdin=False),
        "groovy": Interpreter("e", (), "cD"),
        "osascript": Interpreter("e", (), "ls", words=("-",)),
        "tclsh": Interpreter(words=("-",)),
        "expect": Interpreter("c", words=("-",)),
        "guile": Interpreter("cle", ("--eval",), "LCx"),
        "racket": Interpreter("efr", ("--eval", "--load", "--require")),
        "sbcl": Interpreter(longs=("--eval", "--load"), long_valued=("--core",)),
        "clojure": Interpreter("eM", ("--eval",), stdin=False),
        "java": Interpreter(
            longs=("-javaagent", "-agentlib", "-agentpath", "-XX:OnError", "-XX:OnOutOfMemoryError",
                   "-Xbootclasspath/a", "-XX:Flags", "-XX:VMOptionsFile"),
            long_valued=("-cp", "-classpath", "--class-path", "-p", "--module-path",
                         "--add-modules"),
            stdin=False,
        ),
        "npm": Interpreter("", ("--script-shell", "--node-options"), stdin=False),
        "make": Interpreter("", ("--eval",), stdin=False),
        "gdb": Interpreter("x", ("-ex", "-iex", "--eval-command", "--command"), stdin=True),
        "git": Interpreter("c", ("--exec-path", "--config-env"), "C", stdin=False),
    }
)  # fmt: skip
