"""The peers: one file each, with `PEERS`; their programs, which run in an environment of their own, in `programs/`."""
