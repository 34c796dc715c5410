"""The delivery contract of a template: what must be set for no message to be lost. Plain data in, findings out."""
