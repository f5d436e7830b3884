"""What every attempt has, whatever its kind: surroundings, files on disk, output, reports."""
