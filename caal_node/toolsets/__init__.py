"""Tools that a household expects, each a LiveKit toolset that is off until it is wanted.

`base.py` is what an author derives from, `registry.py` finds what is installed and makes what
`caal.toml` asks for. Everything else here is one set of tools a module or folder, and none imports
another. docs/toolsets.md shows how to write one.
"""
