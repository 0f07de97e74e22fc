"""Calls without any marker: JSON, Python lists, `name {json}`, code fences, `Action:`.

Here the text is speech until it proves to be a call: by where it stands (at the beginning of a
line, or behind the end of a sentence), by a tool's own name, and by arguments.
"""
