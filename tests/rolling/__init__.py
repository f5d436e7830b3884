"""Nodes that are restarted and upgraded one after the other while they work."""
