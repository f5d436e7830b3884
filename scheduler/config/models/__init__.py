"""What jobs.yaml may say, one noun a file."""
