"""`CostGuard`: a run, or a user, spends no more than it may."""

from __future__ import annotations

import logging
import math
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from streampipe.chunks import FinishChunk, ResponseMetadata
from streampipe.contracts import (
    HookArgs,
    OnViolation,
    ProcessLLMRequestArgs,
    ProcessLLMResponseArgs,
    Processor,
    ProcessorViolation,
)
from streampipe.errors import ConfigurationError
from streampipe.operators._scope import report_violation
from streampipe.processors._options import Amount, Count, Name, Share, checked_options
from streampipe.processors._prices import PRICED_ON, PRICES, Price, checked_prices, price_of

__all__ = ["CostGuard"]

Strategy = Literal["block", "warn"]
RUN = "run"
log = logging.getLogger("streampipe")


@dataclass(slots=True)
class _Account:
    """What was spent, and what was told of it."""

    spent: float = 0.0
    is_warned: bool = False
    is_told: bool = False


class CostGuard(Processor):
    """Sums up what model calls cost, and blocks the next one at a limit; for `input_processors`.

    Every call whose model has answered counts, rejected attempts too. What a call costs is known
    when it has ended, so the last one may go over the limit, and so may calls of runs that are
    under way at the same time. A call that ends without its usage counts for nothing: one that
    fails, and one that is cut short by a block or by an operator that ends the stream.

    The prices are list prices, of the day `streampipe.processors._prices.PRICED_ON`, for the best
    known models; `prices` adds to them. Discounts, long prompts and writing to a cache are not
    looked at. What has no price is told once a run, to the log and to `on_violation`, and counts
    for nothing, or blocks with `strict`.

    >>> import asyncio
    >>> from streampipe import Agent
    >>> from streampipe.testing import ScriptedModel
    >>> guard = CostGuard(0.5, scope="user", prices={"script": {"input": 0, "output": 400_000}})
    >>> model = ScriptedModel([["one"]], repeat=True)
    >>> agent = Agent(model=model, input_processors=[guard])
    >>> def ask(user):
    ...     return asyncio.run(agent.generate("hi", request_context={"user": user})).text
    >>> ask("ada"), ask("ada"), ask("ada"), ask("bob"), guard.spent("ada")
    ('one', 'one', '', 'one', 0.8)

    Attributes:
        id: names it in tripwires, violations and spans.
        on_violation: is told when a share of the limit is spent, at the limit, and of what has no
            price.
    """

    @checked_options
    def __init__(
        self,
        limit: Amount,
        *,
        currency: Name = "USD",
        prices: Mapping[str, Mapping[str, float]] | None = None,
        scope: Name = RUN,
        warn_at: Share | None = 0.8,
        strategy: Strategy = "block",
        strict: bool = False,
        max_keys: Count = 10_000,
        id: Name = "cost-guard",  # noqa: A002 - the contract's name
        on_violation: OnViolation | None = None,
    ) -> None:
        """Say how much may be spent.

        Args:
            limit: how much; above 0.
            currency: of what. Any but "USD" needs `prices`, and knows no others.
            prices: of a million tokens, by model: `{"gpt-5": {"input": 1.25, "output": 10,
                "cached_input": 0.125}}`. A model is named with or without its provider
                ("openai/gpt-5") and its date.
            scope: "run", or a key of `request_context`: runs with the same value there spend
                together, as long as this object lives.
            warn_at: at which share of the limit to warn, above 0 and at most 1; None for never.
            strategy: at the limit, block before the next model call, or only tell once.
            strict: block what cannot be counted: a model without a price before it is called, an
                answer without usage when it has come.
            max_keys: how many values of the key are remembered, the least recent forgotten first.
            id: names it.
            on_violation: see the class.

        Raises:
            ConfigurationError: an option is not as described.
        """
        owner = type(self).__name__
        self._limit = float(limit)
        self._warn_at = math.inf if warn_at is None else self._limit * warn_at
        if currency != "USD" and prices is None:
            msg = f"{owner}: currency={currency!r} needs prices: those that are there are in USD"
            raise ConfigurationError(msg)
        own = {} if prices is None else checked_prices(owner, prices)
        self.id = id
        self.on_violation = on_violation
        self._currency = currency
        self._prices: Mapping[str, Price] = {**PRICES, **own} if currency == "USD" else own
        self._scope = scope
        self._blocks = strategy == "block"
        self._strict = strict
        self._max_keys = max_keys
        self._accounts: OrderedDict[Hashable, _Account] = OrderedDict()

    # --- what was spent --------------------------------------------------------------------

    def spent(self, key: Hashable) -> float:
        """What was spent under a value of the key; 0 if that is not known, or no longer."""
        account = self._accounts.get(key)
        return 0.0 if account is None else account.spent

    def reset(self, key: Hashable | None = None) -> None:
        """Forget what was spent under a value of the key; None for all: a new day, say."""
        if key is None:
            self._accounts.clear()
        else:
            self._accounts.pop(key, None)

    def _account(self, args: HookArgs) -> _Account:
        """Whose spending this is.

        Raises:
            ConfigurationError: the call has no such key, or one that nothing can be kept under.
        """
        if self._scope == RUN:
            return args.state.setdefault("account", _Account())  # type: ignore[no-any-return]  # ours
        key = args.request_context.get(self._scope)
        if key is None or not isinstance(key, Hashable):
            msg = (
                f"request_context[{self._scope!r}] is {key!r:.80}: give every call a value that "
                f"can be a key of a dict, or make it {type(self).__name__}(scope='run')"
            )
            raise ConfigurationError(msg)
        account = self._accounts.setdefault(key, _Account())
        self._accounts.move_to_end(key)
        while len(self._accounts) > self._max_keys:
            self._accounts.popitem(last=False)
        return account

    # --- the hooks -------------------------------------------------------------------------

    def process_llm_request(self, args: ProcessLLMRequestArgs) -> None:
        """Block a call that there is no money for, or with `strict` no price."""
        spent = self._account(args).spent
        if self._blocks and spent >= self._limit:
            args.abort(
                f"{self._money(spent)} are spent, of {self._money(self._limit)}",
                metadata=self._detail(spent),
            )
        if not self._strict:
            return
        for model in getattr(args.model, "models", None) or [args.model]:  # a fallback has several
            if price_of(self._prices, model.provider, model.model_id) is None:
                name = f"{model.provider}/{model.model_id}"
                args.abort(self._unpriced(name), metadata={"model": name})

    async def process_llm_response(self, args: ProcessLLMResponseArgs) -> None:
        """Add what a call cost."""
        if args.from_cache:
            return
        name, price = self._found(args)
        usage = next((c.usage for c in args.chunks if isinstance(c, FinishChunk)), None)
        if price is None:
            await self._uncounted(args, name, self._unpriced(name))
        elif usage is None:
            if price != Price(0, 0):
                told = f"{name} told no usage, so that nobody knows what it cost"
                await self._uncounted(args, name, told)
        else:
            await self._add(self._account(args), price.of(usage))

    def _found(self, args: ProcessLLMResponseArgs) -> tuple[str, Price | None]:
        """The model that answered, and its price: by the name it said, else by its own."""
        asked = (args.model.provider, args.model.model_id)
        said = args.raw_response
        named = [asked]
        if isinstance(said, ResponseMetadata) and said.model_id:
            named.insert(0, (said.provider or asked[0], said.model_id))
        prices = (price_of(self._prices, *name) for name in named)
        return "/".join(named[0]), next((price for price in prices if price is not None), None)

    async def _add(self, account: _Account, cost: float) -> None:
        account.spent += cost
        spent = account.spent
        told = f"{self._money(spent)} are spent, of {self._money(self._limit)}"
        if spent >= self._warn_at and not account.is_warned:
            account.is_warned = True
            await self._tell(told, self._detail(spent))
        if spent >= self._limit and not (self._blocks or account.is_told):
            account.is_told = True
            await self._tell(f"the limit is reached: {told}", self._detail(spent))

    async def _uncounted(self, args: ProcessLLMResponseArgs, name: str, told: str) -> None:
        """Tell of a call that cannot be counted, once a run and model."""
        if self._strict:
            args.abort(told, metadata={"model": name})
        names: set[str] = args.state.setdefault("uncounted", set())
        if name not in names:
            names.add(name)
            log.warning("processor %r: %s", self.id, told)
            await self._tell(told, {"model": name})

    async def _tell(self, told: str, detail: dict[str, Any]) -> None:
        await report_violation(self, ProcessorViolation(self.id, told, detail))

    def _unpriced(self, name: str) -> str:
        ours = f" (the table is of {PRICED_ON})" if self._currency == "USD" else ""
        return f"{name} has no price{ours}: give it one with prices="

    def _detail(self, spent: float) -> dict[str, Any]:
        return {"spent": spent, "limit": self._limit, "currency": self._currency}

    def _money(self, amount: float) -> str:
        return f"{amount:.4g} {self._currency}"
