"""`python -m stream_workflows` runs one instance."""

from stream_workflows.main import main

main()
