"""Turns MCP messages into bounded, cleaned values, and back."""
