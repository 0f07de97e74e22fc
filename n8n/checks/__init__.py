"""Checking how well a workflow serves as a tool for a voice."""
