"""`python -m txn_manager` runs one instance."""

from txn_manager.main import main

main()
