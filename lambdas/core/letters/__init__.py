"""Dead letters in the hands of operators: looked at, brought back, repaired or discarded; stray ones go back alone."""
