"""What the topics hold: read, decoded, folded to a moment, and traced."""
