"""Calling a workflow by its webhook, and saying what its reply means."""
