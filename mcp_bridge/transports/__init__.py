"""Carries messages to one server: a process, HTTP, server-sent events or a WebSocket."""
