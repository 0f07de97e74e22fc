"""The few ways in which dialects write a call's name and arguments, shared by all of them."""
