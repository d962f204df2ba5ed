"""Sluice's own interface, /sluice/v1: what gRPC has and Pravega's REST lacks, by subject."""

from api_gateway.console.permissions import PREFIX
from api_gateway.console.rest.routes import ROUTERS, RULES

__all__ = ["PREFIX", "ROUTERS", "RULES"]
