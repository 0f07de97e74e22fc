"""A real n8n for the contract tests: installed by npm, booted, filled with the recorded workflows.

`make test-n8n` (2.2 GB and some ten minutes the first time). Without it the same tests run against
the replay; with it they show that the replay answers as n8n does.
"""
