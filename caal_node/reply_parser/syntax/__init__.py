"""The few ways in which formats write a call's name and arguments, shared by all of them."""
