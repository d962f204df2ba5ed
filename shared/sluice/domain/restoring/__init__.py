"""What becomes of a back-up's states in a journal that begins anew, and how their numbers keep clear of all others.

A back-up holds the state of each aggregate at a cut of the journal. What was decided behind the cut is lost, but the
segment stores have carried it out. So nothing that was ever numbered may be given out a second time, and each stream
asks the stores what happened to it before it serves (`domain.stream.restore`).
"""
