"""What differs between the databases: how to connect, how a transaction begins, what an error means.

One module per database, found by the scheme of the URL."""
