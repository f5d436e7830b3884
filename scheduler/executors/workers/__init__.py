"""Worker processes that carry out `http` and `call` and list for `compensate`, and the daemon's side of them.

Daemon side: `pool worker channels conversation`. Process side: `main http_worker call_worker compensate_worker` (and
what they use). `wire` and `scan_messages` are both.
"""
