"""`python -m cluster_manager`."""

from cluster_manager.main import main

main()
