"""Golden journals: what a release really wrote, and what its fold made of it; every later release folds them alike.

`tests/contract/golden/VERSION` has one journal per story, as production code decided it in a simulation: `NAME.jsonl`
with a record a line, and `NAME.result.json` with digests of the states that it comes to. `python -m golden` records
them for the version that is being made.
"""
