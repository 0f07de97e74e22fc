"""The smallest MCP server that answers: every request's `params` come back as its result.

It imports nothing but what Python has loaded by itself, so that hundreds start within seconds.
"""

import sys

for line in sys.stdin:
    head, _, params = line.rstrip().partition('"params": ')
    call = head.partition('"id": ')[2].partition(",")[0]
    if call:
        sys.stdout.write(f'{{"jsonrpc": "2.0", "id": {call}, "result": {params}\n')
        sys.stdout.flush()
