"""The list: what guards lambdas/, line by line, with what it guards and who must notice when it is gone."""
