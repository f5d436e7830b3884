"""The processes that own child processes, and the client the engine uses.

Process side (standard library only, one thread): `__main__ loop run runs launch processes marks cgroup wire
linux`. Daemon side: `client events orphans state sweep diagnose output`.
"""
