"""The HTTP face: one Starlette app, served on TCP (reading) and on the Unix socket (everything)."""
