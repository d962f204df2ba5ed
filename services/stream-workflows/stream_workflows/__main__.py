"""`python -m stream_workflows` runs one instance."""

from sluice.runtime import run_service
from stream_workflows.main import service

if __name__ == "__main__":
    run_service(service())
