"""Stories with a real daemon: what a user does, what a bad day does to it, and what the ledger and the children's own
stamps say afterwards."""
