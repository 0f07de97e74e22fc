"""Benches: figures, not checks. `python -m tests.bench` runs all of them."""
