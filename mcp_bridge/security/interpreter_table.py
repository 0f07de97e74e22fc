"""Tells of interpreters which of their options bring code, from manual pages and `--help`.

The options of Node.js are those of versions 18 to 24; `--no-` turns any of its flags off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from mcp_bridge.security.interpreters import Interpreter

_NODE_CODE: Final = (
    "--eval", "--print", "--require", "--import", "--loader", "--experimental-loader",
    "--env-file", "--env-file-if-exists", "--inspect", "--inspect-brk", "--inspect-wait",
    "--inspect-port", "--debug-port", "--experimental-config-file",
    "--experimental-default-config-file", "--openssl-config", "--snapshot-blob", "--run",
)  # fmt: skip
"""Given code, a file to load before the script, or a port where a debugger may give some."""
_NODE_VALUED: Final = (
    "--conditions", "--title", "--input-type", "--experimental-default-type", "--icu-data-dir",
    "--diagnostic-dir", "--disable-proto", "--disable-warning", "--dns-result-order",
    "--heapsnapshot-signal", "--heapsnapshot-near-heap-limit", "--max-http-header-size",
    "--redirect-warnings", "--secure-heap", "--secure-heap-min", "--stack-trace-limit",
    "--tls-cipher-list", "--tls-keylog", "--trace-event-categories", "--trace-event-file-pattern",
    "--trace-require-module", "--unhandled-rejections", "--use-largepages", "--v8-pool-size",
    "--watch-path", "--watch-kill-signal", "--localstorage-file", "--cpu-prof-dir",
    "--cpu-prof-name", "--cpu-prof-interval", "--heap-prof-dir", "--heap-prof-name",
    "--heap-prof-interval", "--inspect-publish-uid", "--report-dir", "--report-directory",
    "--report-filename", "--report-signal", "--build-snapshot-config", "--experimental-sea-config",
    "--experimental-policy", "--policy-integrity", "--security-revert", "--max-old-space-size",
    "--max-old-space-size-percentage", "--max-semi-space-size", "--stack-size", "--allow-fs-read",
    "--allow-fs-write", "--network-family-autoselection-attempt-timeout",
    "--es-module-specifier-resolution", "--experimental-specifier-resolution",
    "--test-concurrency", "--test-name-pattern", "--test-reporter", "--test-reporter-destination",
    "--test-shard", "--test-timeout", "--test-skip-pattern", "--test-coverage-include",
    "--test-coverage-exclude", "--test-coverage-lines", "--test-coverage-branches",
    "--test-coverage-functions", "--test-isolation", "--test-global-setup",
)  # fmt: skip
_NODE_FLAGS: Final = (
    "--no-*", "--harmony*", "--abort-on-uncaught-exception", "--allow-addons",
    "--allow-child-process", "--allow-net", "--allow-wasi", "--allow-worker", "--check",
    "--cpu-prof", "--disable-wasm-trap-handler", "--disallow-code-generation-from-strings",
    "--enable-etw-stack-walking", "--enable-fips", "--enable-network-family-autoselection",
    "--enable-source-maps", "--entry-url", "--experimental-abortcontroller",
    "--experimental-detect-module", "--experimental-eventsource", "--experimental-fetch",
    "--experimental-global-webcrypto", "--experimental-import-meta-resolve",
    "--experimental-json-modules", "--experimental-network-imports",
    "--experimental-network-inspection", "--experimental-permission",
    "--experimental-print-required-tla", "--experimental-require-module",
    "--experimental-shadow-realm", "--experimental-sqlite", "--experimental-strip-types",
    "--experimental-test-coverage", "--experimental-test-module-mocks",
    "--experimental-top-level-await", "--experimental-transform-types",
    "--experimental-vm-modules", "--experimental-wasm-modules", "--experimental-webstorage",
    "--experimental-websocket", "--experimental-worker", "--expose-gc", "--force-context-aware",
    "--force-fips", "--force-node-api-uncaught-exceptions-policy", "--frozen-intrinsics",
    "--heap-prof", "--help", "--huge-max-old-generation-size", "--insecure-http-parser",
    "--interactive", "--interpreted-frames-native-stack", "--jitless", "--node-memory-debug",
    "--openssl-legacy-provider", "--openssl-shared-config", "--optimize-for-size",
    "--pending-deprecation", "--permission", "--preserve-symlinks", "--preserve-symlinks-main",
    "--prof", "--prof-process", "--report-compact", "--report-exclude-env",
    "--report-exclude-network", "--report-on-fatalerror", "--report-on-signal",
    "--report-uncaught-exception", "--single-threaded", "--strip-types", "--test",
    "--test-force-exit", "--test-only", "--throw-deprecation", "--trace-deprecation",
    "--trace-env", "--trace-exit", "--trace-promises", "--trace-sigint", "--trace-sync-io",
    "--trace-tls", "--trace-uncaught", "--trace-warnings", "--track-heap-objects",
    "--use-bundled-ca", "--use-env-proxy", "--use-openssl-ca", "--use-system-ca", "--version",
    "--watch", "--watch-preserve-output", "--zero-fill-buffers",
)  # fmt: skip
_NODE: Final = Interpreter(
    "epr", _NODE_CODE, "C", _NODE_VALUED,
    flags="chiv", long_flags=_NODE_FLAGS, words=("-",),
)  # fmt: skip
_TS: Final = Interpreter(
    "epr", _NODE_CODE, "CPO",
    (*_NODE_VALUED, "--tsconfig", "--project", "--compiler-options", "--cwd-mode"),
    flags="chivTHsD",
    long_flags=(*_NODE_FLAGS, "--transpile-only", "--esm", "--swc", "--files", "--pretty",
                "--type-check", "--log-error", "--skip-project", "--clear-screen"),
    words=("-",), runs=("watch",),
)  # fmt: skip
_NODEMON: Final = Interpreter(
    "prx", (*_NODE_CODE, "--exec"), "ewdisC",
    (*_NODE_VALUED, "--ext", "--watch", "--delay", "--ignore", "--signal", "--config",
     "--cwd", "--polling-interval"),
    flags="chvqLVIH", mixed=True,
    long_flags=(*_NODE_FLAGS, "--quiet", "--verbose", "--legacy-watch", "--on-change-only",
                "--exitcrash"),
)  # fmt: skip
_BUN: Final = Interpreter(
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
_DENO: Final = Interpreter(
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
_PYTHON_MODULES: Final = (
    # of the standard library
    "_pyrepl", "asyncio", "bdb", "cProfile", "code", "doctest", "idlelib", "lib2to3", "pdb",
    "pickle", "pip", "profile", "profiling", "pty", "pydoc", "runpy", "site", "test", "timeit",
    "trace", "turtledemo", "unittest",
    # debuggers, profilers, runners
    "austin", "coverage", "debugpy", "fire", "honcho", "invoke", "ipdb", "ipykernel", "jupyter",
    "kernprof", "line_profiler", "memory_profiler", "memray", "nox", "pudb", "pyinstrument",
    "pytest", "scalene", "snakeviz", "tox", "viztracer", "watchdog", "watchfiles",
)  # fmt: skip
"""Modules that run code or a program of their arguments, or what stdin brings, after `python -m`.

Those that are programs of their own under the same name (`uv`, `IPython`) are judged as such.
"""
_PYTHON: Final = Interpreter(
    "ci", (), "WX", ("--check-hash-based-pycs",), flags="bBdEhIOPqRsSuvVx?t3",
    long_flags=("--help*", "--version"), settings=("pycache_prefix", "presite"),
    module="m", modules=_PYTHON_MODULES, words=("-",),
)  # fmt: skip
_SHELL: Final = Interpreter(
    "cis", ("--command", "--init-command", "--init-file", "--rcfile", "--interactive"), "oO",
    ("--features", "--profile"), flags="abefhklmnprtuvxBCDEHPT",
    long_flags=("--no*", "--login", "--posix", "--restricted", "--private", "--verbose"),
    words=("-",),
)  # fmt: skip
_POWERSHELL: Final = Interpreter(
    longs=("-command", "-c", "-commandwithargs", "-cwa", "-encodedcommand", "-e", "-ec",
           "-encodedarguments", "-interactive", "-noexit"),
    long_valued=("-executionpolicy", "-ex", "-ep", "-windowstyle", "-w", "-inputformat",
                 "-outputformat", "-workingdirectory", "-wd", "-configurationname",
                 "-configurationfile", "-custompipename", "-settingsfile", "-version"),
    long_flags=("-noprofile", "-nologo", "-noninteractive", "-noprofileloadtime", "-login", "-mta",
                "-sta", "-sshservermode"),
    script="f", words=("-",), loose=True,
)  # fmt: skip
# The value of -F becomes part of the program.
_PERL: Final = Interpreter(
    "eEMmdxF", (), "I", joined="CDV", flags="acfhlnpisStTuUvwWX0123456789?", words=("-",)
)
_RUBY: Final = Interpreter(
    "er", ("--require", "--eval"), "ICEF",
    ("--encoding", "--external-encoding", "--internal-encoding", "--disable", "--enable", "--dump",
     "--backtrace-limit", "--parser"),
    joined="KWTx", flags="acdhilnpsSUvVwy0123456789",
    long_flags=("--disable-*", "--enable-*", "--jit*", "--yjit*", "--rjit*", "--verbose",
                "--version", "--copyright", "--debug", "--help"),
    words=("-",),
)  # fmt: skip
_PHP: Final = Interpreter(
    "rRBEadzF",
    ("--run", "--process-begin", "--process-code", "--process-end", "--process-file",
     "--interactive", "--define", "--zend-extension"),
    "cSt", ("--php-ini", "--server", "--docroot"), flags="ehilmnqsvw", script="f",
    scripts=("--file",), long_flags=("--no-*", "--syntax-check", "--timing"), words=("-",),
)  # fmt: skip
_JAVA: Final = Interpreter(
    longs=("-javaagent", "-agentlib", "-agentpath", "-XX:OnError", "-XX:OnOutOfMemoryError",
           "-Xbootclasspath/a", "-XX:Flags", "-XX:VMOptionsFile", "--patch-module"),
    long_valued=("-cp", "-classpath", "--class-path", "-p", "--module-path",
                 "--upgrade-module-path", "--add-modules", "--add-reads", "--add-exports",
                 "--add-opens", "--limit-modules", "--source", "--enable-native-access"),
    joined="XDdevsc", scripts=("-jar", "-m", "--module"),
    long_flags=("--enable-preview", "--show-version", "--dry-run", "--version", "--help"),
    stdin=False,
)  # fmt: skip
_EVALS: Final = Interpreter("e", ("--eval",), stdin=False)

INTERPRETERS: Final[Mapping[str, Interpreter]] = MappingProxyType(
    {
        **dict.fromkeys(("node", "nodejs", "iojs", "electron"), _NODE),
        **dict.fromkeys(
            ("tsx", "ts-node", "ts-node-esm", "jiti", "esno", "vite-node", "babel-node",
             "swc-node"),
            _TS,
        ),
        "nodemon": _NODEMON,
        "bun": _BUN,
        "deno": _DENO,
        **dict.fromkeys(("python", "pythonw", "pypy", "py", "micropython"), _PYTHON),
        "ipython": replace(
            _PYTHON,
            longs=("--code-to-run", "--ext", "--InteractiveShellApp.code-to-run",
                   "--InteractiveShellApp.exec-lines", "--InteractiveShellApp.exec-files",
                   "--InteractiveShellApp.extensions"),
        ),
        **dict.fromkeys(("bpython", "ptpython", "ptipython", "hy"), replace(_PYTHON, stdin=False)),
        **dict.fromkeys(
            ("sh", "bash", "rbash", "dash", "zsh", "ksh", "mksh", "csh", "tcsh", "fish", "ash",
             "hush", "nu", "elvish", "xonsh", "yash"),
            _SHELL,
        ),
        **dict.fromkeys(("pwsh", "powershell", "pwsh-preview"), _POWERSHELL),
        "perl": _PERL,
        **dict.fromkeys(("ruby", "jruby", "irb"), _RUBY),
        **dict.fromkeys(("php", "php-cgi"), _PHP),
        **dict.fromkeys(("lua", "luajit"), Interpreter("eli", flags="EvW", words=("-",))),
        "rscript": Interpreter("e", (), stdin=False),
        "r": Interpreter("ef", ("--eval", "--file", "--args"), stdin=True),
        "julia": Interpreter(
            "eELJ", ("--eval", "--print", "--load", "--sysimage"), "ptHC",
            ("--threads", "--procs", "--machine-file", "--cpu-target", "--gcthreads", "--home"),
            joined="Og", flags="iqvh", long_flags=("--project", "--quiet"), words=("-",),
        ),
        "elixir": Interpreter("er", ("--eval", "--rpc-eval", "--erl", "--require"), "S"),
        "erl": Interpreter(longs=("-eval", "-run", "-s"), stdin=False, mixed=True),
        "groovy": Interpreter("e", (), "cD", ("-cp", "-classpath", "--classpath")),
        "osascript": Interpreter("e", (), "ls", words=("-",)),
        "tclsh": Interpreter(words=("-",)),
        "expect": Interpreter("c", script="f", flags="bdinNv", words=("-",)),
        "guile": Interpreter("cle", ("--eval",), "LCx", script="s"),
        "racket": Interpreter("efr", ("--eval", "--load", "--require")),
        "sbcl": Interpreter(longs=("--eval", "--load"), long_valued=("--core",)),
        "clojure": Interpreter("eM", ("--eval",), stdin=False),
        **dict.fromkeys(
            ("scala", "kotlin", "swift", "ocaml", "ghc", "qjs", "zx", "coffee"), _EVALS
        ),
        "octave": Interpreter("", ("--eval",), stdin=False),
        "java": _JAVA,
        "npm": Interpreter(
            "c", ("--call", "--script-shell", "--node-options", "--userconfig", "--globalconfig"),
            words=("explore",), stdin=False, mixed=True,
        ),
        "make": Interpreter("E", ("--eval",), stdin=False, mixed=True, assigns=True),
        "gdb": Interpreter("x", ("-ex", "-iex", "--eval-command", "--command"), mixed=True),
        "git": Interpreter("c", ("--exec-path", "--config-env"), "C", stdin=False),
        "go": Interpreter(
            "", ("-exec", "--exec", "-toolexec", "--toolexec", "-vettool", "--vettool"), "",
            ("-C", "-mod", "-tags", "-ldflags", "-gcflags", "-p", "-o", "-modfile"),
            runs=("run", "test", "tool", "vet", "build", "install", "generate"), stdin=False,
        ),
        "cargo": Interpreter(
            "", ("--config",), "pFjC",
            ("--bin", "--example", "--package", "--features", "--manifest-path", "--target",
             "--target-dir", "--profile"),
            flags="qrv", stdin=False, mixed=True,
            long_flags=("--no-*", "--all-features", "--frozen", "--locked", "--offline", "--quiet",
                        "--release", "--verbose"),
        ),
    }
)  # fmt: skip
