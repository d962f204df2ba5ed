"""What a Pravega controller answers: one table of cases, for Pravega's own controller and for ours.

A case is a script of calls with the answers expected (`case`); `calls*` builds the calls, `views` says what of an
answer counts, `table` holds all cases by subject. `targets` are the controllers, `running` runs several at a time.
Where both are right to differ, the case says what each answers and why.
"""
