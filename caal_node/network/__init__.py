"""Which networks this process may use, and what keeps it to them.

`policy.py` judges addresses and names, `guard.py` stops connections of this process, `targets.py`
judges an address before something connects that Python does not see, and `__main__.py` runs
another program of Python under the same rules. docs/network.md says what is kept in, and what
cannot be.
"""
