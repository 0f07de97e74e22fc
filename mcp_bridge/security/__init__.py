"""What a configuration may start and reach, and what of a server's words reaches people and models.

One concept a file. Everything here is decided from what it is given, and from the disk; it starts
and calls nothing.
"""
