"""What may be called, by whom: rules in, judgements out. Nothing here does I/O."""
