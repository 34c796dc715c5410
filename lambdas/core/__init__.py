"""Pure rules: what may happen to a job. No AWS, no clock, no randomness, no logging, no environment."""
