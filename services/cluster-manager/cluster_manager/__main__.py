"""`python -m cluster_manager`."""

from functools import partial

from cluster_manager.main import SERVICE, start
from cluster_manager.settings import ClusterManagerSettings
from sluice.runtime import run_service

if __name__ == "__main__":
    settings = ClusterManagerSettings()
    run_service(SERVICE, settings, partial(start, settings))
