"""What several kinds of tests share that starts no processes."""
