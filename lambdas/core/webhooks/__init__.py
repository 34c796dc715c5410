"""Telling a tenant's endpoint how a job ended: each delivery has a record of its own, with a protocol like a job's."""
