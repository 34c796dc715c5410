"""The rim: one file per service, each class fulfils one port of the core."""
