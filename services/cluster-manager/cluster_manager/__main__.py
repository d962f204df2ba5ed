"""`python -m cluster_manager`."""

from cluster_manager.main import service
from sluice.runtime import run_service

if __name__ == "__main__":
    run_service(service())
