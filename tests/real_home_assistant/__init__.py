"""A real Home Assistant from PyPI, furnished with its demo devices: see `__main__.py`."""
