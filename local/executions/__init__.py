"""Plays Step Functions: executions of the template's state machines, by moto's interpreter and with our functions."""
