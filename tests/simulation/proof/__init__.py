"""Every crash point of every scenario: recorded from a clean run, struck one after the other, judged by invariants.

`scenarios` say what happens (`acts`: who steps in), `trace` where that can be struck, `cases` with what. `playing`
plays them on one stack, a `run` each; `chronicle` and `evidence` keep what was seen, `invariants` judge it, `table`
tells. `python -m tests.simulation.proof --help` is the command."""
