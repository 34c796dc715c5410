"""What the parts agree on: names, schemas, the HTTP contract, and the one way to check a value against them."""
