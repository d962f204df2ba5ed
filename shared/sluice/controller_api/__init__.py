"""Made by `generate.py`; not to be edited."""
