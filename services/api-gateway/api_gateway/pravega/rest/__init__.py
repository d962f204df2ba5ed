"""The admin REST API of Pravega's controller: /v1, /ping and /prometheus (admin-rest-api)."""

from api_gateway.pravega.rest.routes import ROUTERS

__all__ = ["ROUTERS"]
