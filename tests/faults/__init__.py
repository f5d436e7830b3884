"""Single faults of networks and databases, and what several real daemons make of each of them."""
