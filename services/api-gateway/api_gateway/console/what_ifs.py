"""What-if questions of all callers: one at a time, since each keeps the process that reads the past busy for long."""

from collections.abc import Awaitable, Callable

from api_gateway.edge.shares import Shares
from sluice.lookback.what_if import WhatIfQuestion
from sluice.policies.rules import Rules
from sluice.policies.what_if import WhatIf


class WhatIfs:
    """`rules` are those by which retention-spark decides in this system. Belongs to the event loop."""

    def __init__(self, rules: Rules | None = None) -> None:
        self.rules = rules or Rules()
        self._shares = Shares(1, "what-ifs")

    async def ask(self, ask: Callable[[WhatIfQuestion], Awaitable[WhatIf]], question: WhatIfQuestion) -> WhatIf:
        """What `ask` finds. Raises as it does, and OverloadedError while another question is being answered."""
        with self._shares.taken():
            return await ask(question)
