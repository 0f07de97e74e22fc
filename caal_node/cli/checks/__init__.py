"""What `caal-node doctor` looks at: one module a part, each look a small function."""
