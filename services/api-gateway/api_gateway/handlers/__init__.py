"""The RPCs, by subject. Each converts, asks the journal's view or a service, and converts back; it decides nothing."""

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

Context = grpc.aio.ServicerContext[Any, Any]
Handler = Callable[[Any, Context], Awaitable[Any]]
