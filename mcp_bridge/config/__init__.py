"""Reads the file of servers into `ServerConfig` objects."""
