"""The end-to-end tests on an emulator that is not ours: `python -m tests.ministack` starts it, deploys, asks and ends it."""
