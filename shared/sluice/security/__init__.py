"""Who calls, what they may do, and what proves it: the parts that services, command line and local stack share.

Facts: Pravega's formats of credentials, password files, ACLs and delegation tokens. Decisions about one call are the
gateway's; here are the rules that it and `sluice security` have in common.
"""
