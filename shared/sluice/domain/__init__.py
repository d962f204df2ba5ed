"""What is true and what may happen next: pure rules, no I/O, clock or randomness."""
