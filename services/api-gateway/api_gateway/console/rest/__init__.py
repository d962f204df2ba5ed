"""Sluice's own interface, /sluice/v1: what gRPC has and Pravega's REST lacks, by subject."""

from api_gateway.console.rest.base import PREFIX
from api_gateway.console.rest.routes import ROUTERS

__all__ = ["PREFIX", "ROUTERS"]
