"""The page in which people talk to the agent in a browser."""
