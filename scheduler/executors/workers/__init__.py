"""Worker processes that carry out `http` and `call`, and the daemon's side of them.

Daemon side: `pool worker channels`. Process side: `main http_worker call_worker` (and what they use). `wire` is both.
"""
