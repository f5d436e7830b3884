"""What daemons under measurement load as their users' plug-ins."""
