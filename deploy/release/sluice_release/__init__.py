"""Makes the artefacts of a release, and uses them as a stranger would."""
