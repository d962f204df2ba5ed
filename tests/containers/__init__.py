"""Each service alone, as a container from its image, beside real Kafka, Redis and ZooKeeper: its contract.

Testcontainers reads its own settings when it is imported, so they are made here, before any module here imports it:
there is no image of its reaper to pull, and containers are reached by their ports on this machine.
"""

import os

os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")
os.environ.setdefault("TESTCONTAINERS_CONNECTION_MODE", "docker_host")
