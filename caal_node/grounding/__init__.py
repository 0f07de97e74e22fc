"""What a turn has to stand on: its calls and their results, and what the person said."""
