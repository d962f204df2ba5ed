"""What every caller of the gateway meets first: who calls, bounds, submitting, reads behind the barrier, errors."""
