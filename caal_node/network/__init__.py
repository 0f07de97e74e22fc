"""Which networks this process may use, and what keeps it to them.

`policy.py` judges addresses and names, `guard.py` stops connections of this process, and
`rooms.py` judges an address before something connects that Python does not see. docs/security.md
says what is kept in, and what cannot be.
"""
