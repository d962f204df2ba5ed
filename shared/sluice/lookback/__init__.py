"""The past: topics read, decoded, folded to a moment, and searched, for the command line and the api-gateway alike.

What is here blocks, and reads as much as it is asked for. So no event loop that serves callers may run it: the command
line does in its only thread, the gateway in a process of its own.
"""
