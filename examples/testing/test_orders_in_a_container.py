"""The same from the image `sluice/dev`: `pip install "sluice-streams-dev[testcontainers]"`, and a container engine."""

import asyncio

from test_orders import order

from sluice_dev.container import SluiceDevContainer


def test_an_order_is_read() -> None:
    with SluiceDevContainer("--scope", "demo") as sluice:
        assert asyncio.run(order(sluice.controller, "demo", b"tea")) == [b"tea"]
