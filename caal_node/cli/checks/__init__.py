"""The checks of `caal-node doctor`: each is one small function that returns its findings."""
