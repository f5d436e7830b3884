"""schedctl: what people type. Online verbs talk HTTP over the daemon's Unix socket and load as little as they can."""
