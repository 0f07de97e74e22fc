"""What every part of this package rests on: its error, its data types, JSON and HTTP."""
