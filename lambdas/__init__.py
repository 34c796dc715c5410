"""What runs: everything in this package ships to Lambda, and nothing else does."""
