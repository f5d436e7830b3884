"""Ways by which people are told, one file per kind: each is found by its name, sends in a process of its own, and is
held to one contract suite."""
