"""How webhooks are signed: one module here per scheme or provider.

A module has one frozen dataclass with `kind` that implements `core.signature.Scheme`; its fields are what may be
written below `signature` in jobs.yaml. `registry.discover` finds it: adding a scheme is adding one module. `common` is
what they share, `diagnosis` says why a request was refused.
"""
