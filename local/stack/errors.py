"""What is wrong with a template, named by the logical id that it is wrong at."""

from __future__ import annotations


class TemplateError(ValueError):
    """The template cannot become a stack on this machine, or would not become one on AWS."""

    def at(self, logical_id: str) -> TemplateError:
        """The same error, saying where; an error that already says so is left alone."""
        return self if str(self).startswith("[") else TemplateError(f"[{logical_id}] {self}")
