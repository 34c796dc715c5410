"""Jobs whose work is an execution of a state machine: started, followed, collected (rows 13 and 14)."""
