"""Whom a secured controller lets do what: every RPC and every HTTP call, by callers of all kinds.

What is needed stands in tables of its own here, written after Pravega's sources and compared with its controller; the
gateway's own tables are not looked at. A call counts as let through unless it is refused for its caller: the targets
of the calls do not exist, so what it is answered otherwise does not matter here.
"""
