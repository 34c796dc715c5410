"""The synthesized template, and what it becomes when it is provisioned on this machine."""
