"""The sweep: finds what is stuck or was never recorded, puts it back, and certifies what it found."""
