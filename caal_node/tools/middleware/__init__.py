"""Rules about calls that come along: each one class, composed in `standard`."""
