"""`ToolCallGuard`: which tools may be called, with what, and how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

from streampipe.chunks import Chunk, StepStart, ToolCall, ToolCallInputStart, ToolResult
from streampipe.contracts import (
    OnViolation,
    Processor,
    ProcessOutputStepArgs,
    ProcessOutputStreamArgs,
)
from streampipe.contracts.processor import HookArgs
from streampipe.errors import ConfigurationError
from streampipe.operators._functions import UnfitError, check_function
from streampipe.operators._options import checked_count
from streampipe.processors._options import Count, Name, checked_names, checked_options

__all__ = ["ToolCallGuard"]

Check = Callable[[Any], bool | str]
"""Looks at a call's arguments: True lets it pass; False, or a text that says why, refuses it."""

Strategy = Literal["block", "retry"]


class ToolCallGuard(Processor):
    """Lets no tool of a step start if one of its calls breaks a rule.

    For `output_processors`. It decides when the model has answered, with the arguments as the
    processors before it left them. A tool that the provider runs itself has started by then; such
    a call is looked at in the stream, its name as soon as the call begins.

    Calls are counted over the run, those of rejected answers not among them. What is told of a
    refusal names the tool and the rule, never the arguments; only a check's own text says what its
    author has it say.

    >>> import asyncio
    >>> from streampipe import Agent, tool
    >>> from streampipe.testing import ScriptedModel, call
    >>> @tool
    ... def pay(amount: int) -> str:
    ...     '''Pay an amount.'''
    ...     return "paid"
    >>> guard = ToolCallGuard(check={"pay": lambda args: args["amount"] <= 50}, strategy="retry")
    >>> script = [[call("pay", {"amount": 900})], [call("pay", {"amount": 9})], ["Done."]]
    >>> agent = Agent(
    ...     model=ScriptedModel(script),
    ...     tools=[pay],
    ...     output_processors=[guard],
    ...     max_processor_retries=1,
    ... )
    >>> result = asyncio.run(agent.generate("Pay 9."))
    >>> [call.args for call in result.tool_calls], result.retries
    ([{'amount': 9}], 1)

    Attributes:
        id: names it in tripwires, violations and spans.
        on_violation: is told of every refusal.
    """

    stream_window = 0

    @checked_options
    def __init__(
        self,
        allow: Collection[str] | None = None,
        *,
        deny: Collection[str] = (),
        check: Mapping[str, Check] | None = None,
        max_calls: Count | None = None,
        max_calls_per_tool: Mapping[str, int] | None = None,
        strategy: Strategy = "block",
        id: Name = "tool-call-guard",  # noqa: A002 - named as the attribute
        on_violation: OnViolation | None = None,
    ) -> None:
        """Say what is allowed.

        Args:
            allow: names of the tools that may be called; None for every tool, `[]` for none.
            deny: names of the tools that may not.
            check: for a tool, a plain function of a call's arguments: True lets the call pass;
                False, or a text that tells why, refuses it.
            max_calls: how many calls a run may make in all.
            max_calls_per_tool: for a tool, how many calls of it a run may make.
            strategy: "block" ends the run at a refusal; "retry" rejects the answer and asks for
                another, with the refusal as feedback, while the agent's `max_processor_retries`
                last.
            id: names it.
            on_violation: is told of every refusal.

        Raises:
            ConfigurationError: there is no rule; an option is none of its values; a tool that may
                not be called has a check or a limit; a tool's limit can never be reached.
        """
        owner = type(self).__name__
        self.id = id
        self.on_violation = on_violation
        named = None if allow is None else checked_names(owner, "allow", allow)
        self._allow = None if named is None else frozenset(named)
        self._deny = frozenset(checked_names(owner, "deny", deny))
        self._checks = _by_tool(owner, "check", check)
        self._limits: dict[str, int] = _by_tool(owner, "max_calls_per_tool", max_calls_per_tool)
        self._max_calls = max_calls
        self._retries = strategy == "retry"
        self._refuse_wrong(owner)

    def _refuse_wrong(self, owner: str) -> None:
        """Refuse values that are none, and rules that contradict one another.

        Raises:
            ConfigurationError: see the class.
        """
        most = self._max_calls
        for tool, function in self._checks.items():
            check_function(owner, f"check[{tool!r}]", function, "a processor of your own")
        for tool, limit in self._limits.items():
            checked_count(owner, f"max_calls_per_tool[{tool!r}]", limit)
            if most is not None and limit > most:
                msg = (
                    f"{owner}: max_calls_per_tool[{tool!r}] is {limit}, which is never reached: "
                    f"max_calls is {most}"
                )
                raise ConfigurationError(msg)
        if self._allow is None and not (self._deny or self._checks or self._limits or most):
            msg = f"{owner}: give allow, deny, check, max_calls or max_calls_per_tool"
            raise ConfigurationError(msg)
        for option, tools in (
            ("allow", self._allow or ()),
            ("check", self._checks),
            ("max_calls_per_tool", self._limits),
        ):
            for tool in sorted(tools):
                if self._rule_of(tool) is not None:
                    msg = f"{owner}: {option} names {tool!r}, which deny or allow rules out"
                    raise ConfigurationError(msg)

    # --- the hooks -------------------------------------------------------------------------

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """Look at calls of tools that the provider runs; everything passes as it is."""
        part = args.part
        match part:
            case StepStart():
                _tally(args).begin(part.step_number)
            case ToolCallInputStart() if part.provider_executed:
                self._judge_name(part.tool_name, args)
            case ToolCall() if part.provider_executed:
                if part.args_text is not None:  # nobody knows what the provider makes of them
                    self._refuse(part.tool_name, "check", "its arguments are no JSON", args)
                self._judge(part.tool_name, part.args, args)
            case ToolResult() if part.provider_executed:  # the call may have been dropped before us
                self._judge_name(part.tool_name, args)
            case _:
                pass
        return part

    def process_output_step(self, args: ProcessOutputStepArgs) -> None:
        """Look at the calls of the step, before any of its tools starts."""
        for call in args.tool_calls:
            if call.provider_executed:
                continue
            if call.args_text is not None:  # no JSON: the call fails, and the model is told
                self._judge_name(call.tool_name, args)
                self._count(call.tool_name, args)
            else:
                part = args.message_list.tool_invocation(call.tool_call_id)
                self._judge(call.tool_name, call.args if part is None else part.args, args)

    # --- the rules -------------------------------------------------------------------------

    def _judge(self, tool: str, arguments: Any, args: HookArgs) -> None:
        """Refuse a call that breaks a rule, and count one that does not."""
        self._judge_name(tool, args)
        check = self._checks.get(tool)
        if check is not None:
            answer: Any = check({} if arguments is None else arguments)  # as the tool gets them
            if isinstance(answer, str):
                self._refuse(tool, "check", answer, args)
            if not isinstance(answer, bool):
                kind = type(answer).__name__
                msg = f"check[{tool!r}] returned a {kind}; it has to return True, False or a text"
                raise UnfitError(msg)
            if not answer:
                self._refuse(tool, "check", "its arguments are not allowed", args)
        self._count(tool, args)

    def _judge_name(self, tool: str, args: HookArgs) -> None:
        rule = self._rule_of(tool)
        if rule is not None:
            self._refuse(tool, rule, "this tool may not be called", args)

    def _rule_of(self, tool: str) -> str | None:
        """The rule that rules a tool out by its name."""
        if tool in self._deny:
            return "deny"
        return "allow" if self._allow is not None and tool not in self._allow else None

    def _count(self, tool: str, args: HookArgs) -> None:
        of_tool, of_all = _tally(args).add(tool)
        limit = self._limits.get(tool)
        if limit is not None and of_tool > limit:
            why = f"it may be called {_times(limit)} in a run"
            self._refuse(tool, "max_calls_per_tool", why, args)
        if self._max_calls is not None and of_all > self._max_calls:
            why = f"tools may be called {_times(self._max_calls)} in a run"
            self._refuse(tool, "max_calls", why, args)

    def _refuse(self, tool: str, rule: str, why: str, args: HookArgs) -> None:
        """Stop the run, or reject the step.

        Raises:
            TripWire: always.
        """
        told = {"tool": tool, "rule": rule}
        args.abort(f"call of {tool!r:.80}: {why}", retry=self._retries, metadata=told)


class _Tally:
    """How often tools were called in a run: in accepted steps, and in the one that goes on.

    A step that begins again has the number that it had.
    """

    def __init__(self) -> None:
        self._step = -1
        self._before: Counter[str] = Counter()
        self._now: Counter[str] = Counter()

    def begin(self, step: int) -> None:
        """A step begins: what was counted in a rejected attempt at it is void."""
        if step != self._step:
            self._before += self._now
            self._step = step
        self._now = Counter()

    def add(self, tool: str) -> tuple[int, int]:
        """Count a call; give how many there are now of this tool, and of all."""
        self._now[tool] += 1
        return self._before[tool] + self._now[tool], self._before.total() + self._now.total()


def _tally(args: HookArgs) -> _Tally:
    """The run's own."""
    tally: _Tally = args.state.setdefault("tally", _Tally())
    return tally


def _by_tool(owner: str, option: str, value: object) -> dict[str, Any]:
    """An option that says something of each of some tools.

    Raises:
        ConfigurationError: it is no mapping by names.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        msg = (
            f"{owner}: {option} must map names of tools to what is said of them, not {value!r:.80}"
        )
        raise ConfigurationError(msg)
    checked_names(owner, option, list(value))
    return dict(value)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
