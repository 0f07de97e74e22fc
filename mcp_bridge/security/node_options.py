"""The options of Node.js, from `node --help` of versions 18 to 24; `--no-` turns any flag off."""

from __future__ import annotations

from typing import Final

CODE: Final = (
    "--eval", "--print", "--require", "--import", "--loader", "--experimental-loader",
    "--env-file", "--env-file-if-exists", "--inspect", "--inspect-brk", "--inspect-wait",
    "--inspect-port", "--debug-port", "--experimental-config-file",
    "--experimental-default-config-file", "--openssl-config", "--snapshot-blob", "--run",
)  # fmt: skip
"""Given code, a file to load before the script, or a port where a debugger may give some."""
VALUED: Final = (
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
FLAGS: Final = (
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
