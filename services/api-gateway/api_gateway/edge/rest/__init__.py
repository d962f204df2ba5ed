"""What all routes over HTTP have in common."""
