"""Reader groups that Java's readers and these share: their state, what is decided on it, and their administration."""
