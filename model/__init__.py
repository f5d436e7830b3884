"""The protocol of locks, beats, fences and trust as a model, and its check (docs/model.md)."""
