"""The end-to-end tests on an emulator that is not ours: `python -m tests.ministack` starts, deploys, asks, ends it."""
