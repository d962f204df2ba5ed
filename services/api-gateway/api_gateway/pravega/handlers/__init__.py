"""The RPCs, by subject. Each converts, reads the view or submits a command, and converts back; it decides nothing."""

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

Context = grpc.aio.ServicerContext[Any, Any]
Handler = Callable[[Any, Context], Awaitable[Any]]
