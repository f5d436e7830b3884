"""What measurements share: daemons, children's stamps, percentiles, load, the machine's books."""
