"""The admin REST API of Pravega's controller: /v1, /ping and /prometheus (admin-rest-api)."""

from api_gateway.rest.pravega_v1.routes import ROUTERS

__all__ = ["ROUTERS"]
