"""Trying a model's tool calls before anybody speaks to it, and remembering what came of it."""
