"""The checks of `caal-node doctor`: each is one small function that returns its findings.

To add one, write it in the module of its subject, and name it with a deadline in `doctor.py`.
"""
