"""Events of streams, written and read through the client library."""
