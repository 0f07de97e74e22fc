"""Finds tools by globs, by words and by meaning."""
