"""The races of one job as a small model, explored exhaustively. The rules in it are the core's own.

`record`: the job's record, small and hashable. `law`: the core's functions, run on such a record and remembered.
`world`, `worker`, `outside`: who may do what next. `properties`: what must hold. `explore`: every order of it all.
`hours`: the same with a clock, for bounds. `wrong`, `reviewed`: protocols that are not ours, and the property that each
breaks. `ahead`: rows of the protocol that are not built yet, in worlds of their own: `approvals`, `workflows`.
`deliveries`, `attempts`: a webhook's delivery, `delivery_record` and `post` being its `record` and `acts`; its wrong
protocols are `wrong_deliveries`. `long_runs`: core and model in step. `make prove-races` runs the large sets."""
