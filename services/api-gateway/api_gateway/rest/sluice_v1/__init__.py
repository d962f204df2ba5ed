"""Sluice's own interface, /sluice/v1: what gRPC has and Pravega's REST lacks, by subject."""

from api_gateway.rest.sluice_v1.base import PREFIX
from api_gateway.rest.sluice_v1.routes import ROUTERS

__all__ = ["PREFIX", "ROUTERS"]
