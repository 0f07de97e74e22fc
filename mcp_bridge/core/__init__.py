"""Types and small helpers that every other room uses. It imports no other room."""
