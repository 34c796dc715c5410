"""The tests, and what they build upon: `builders` makes values, `fakes` stand in for the world."""
