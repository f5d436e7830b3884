"""What several compensators share: the HTTP client, items of lists, how options are read."""
