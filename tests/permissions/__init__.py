"""Permissions proven by use: what the functions did over all suites, beside what the template lets them do."""
