"""Hostile and broken peers, each let loose on the real parts: `make attack`."""
