"""What jobs do: one module here per action kind.

A module has a class with `kind` (its key in jobs.yaml) that implements `registry.ActionExecutor`, and, unless the kind
comes with the configuration's own package, a subclass of `scheduler.config.actions.base.Options` that says what may be
written below the key. `registry.discover` finds it: adding a kind is adding one module. `attempts` is what all kinds
share (environment, files, output, reports), `workers` are the processes that carry out `http` and `call`.
"""
