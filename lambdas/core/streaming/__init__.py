"""Text while it comes: stored in chunks as a model says it, and read again by whoever watches, from any point on."""
