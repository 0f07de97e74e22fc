"""What stands in tests for a model, a server, a room or a clock, and what drives the real ones."""
