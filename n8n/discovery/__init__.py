"""Finding out which workflows an instance has, and making tools of them."""
