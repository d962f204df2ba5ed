"""The interfaces of Pravega's controller: the RPCs, and REST at /v1."""
