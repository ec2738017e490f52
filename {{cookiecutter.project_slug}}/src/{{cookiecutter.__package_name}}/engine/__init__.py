"""The wiring that every project shares: a team reads it, and leaves it as it is."""
