"""What schemes share: reading codes and times from strangers, comparing, the way from a request to a verdict."""
