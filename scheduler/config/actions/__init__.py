"""What the actions that come with the scheduler may say in jobs.yaml, one kind a file."""
