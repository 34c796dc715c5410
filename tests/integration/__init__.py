"""Adapters, handlers and the local runtime, each against the services they talk to."""
