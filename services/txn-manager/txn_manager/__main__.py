"""`python -m txn_manager` runs one instance."""

from sluice.runtime import run_service
from txn_manager.main import service

if __name__ == "__main__":
    run_service(service())
