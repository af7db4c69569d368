"""`ToolSearch`: many tools, of which the model sees those that it has looked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from streampipe.contracts import (
    ProcessInputStepArgs,
    ProcessInputStepResult,
    Processor,
    Tool,
    ToolContext,
)
from streampipe.errors import ConfigurationError, ToolArgumentsError
from streampipe.processors._bm25 import Bm25, terms_of
from streampipe.processors._options import Count, Name, checked_names, checked_options

__all__ = ["ToolSearch"]

SEARCH = "search_tools"


class ToolSearch(Processor):
    """Shows the model a tool that searches tools, and from then on what it has found in this run.

    For `input_processors`. With hundreds of tools a prompt is long, and models choose badly. The
    tools given here are not shown; the model sees `search_tools`, the tools of the agent itself,
    and those that `always` names. A search ranks names and descriptions by BM25, its result lists
    the tools that fit, and they are there in the next step, until the run ends.

    A run takes two steps more that way, which the agent's `max_steps` must have room for.

    >>> import asyncio
    >>> from streampipe import Agent, tool
    >>> from streampipe.testing import ScriptedModel, call
    >>> @tool
    ... def get_weather(city: str) -> str:
    ...     '''Tell how the weather is.'''
    ...     return "sunny"
    >>> @tool
    ... def send_mail(to: str) -> str:
    ...     '''Send an e-mail.'''
    ...     return "sent"
    >>> script = [[call("search_tools", {"query": "the weather in Porto"})], ["Sunny."]]
    >>> model = ScriptedModel(script)
    >>> search = ToolSearch([get_weather, send_mail])
    >>> asyncio.run(Agent(model=model, input_processors=[search]).generate("Porto?")).text
    'Sunny.'
    >>> [[tool.name for tool in request.tools] for request in model.requests]
    [['search_tools'], ['search_tools', 'get_weather']]
    """

    @checked_options
    def __init__(
        self,
        tools: Sequence[Tool],
        *,
        top_k: Count = 5,
        always: Collection[str] = (),
        id: Name = "tool-search",  # noqa: A002 - named as the attribute
    ) -> None:
        """Index the tools.

        Args:
            tools: what can be found; a function is made a tool by `@tool`.
            top_k: how many tools a search finds at most, at least 1.
            always: names of those that are shown without being looked for.
            id: what it goes by.

        Raises:
            ConfigurationError: `tools` is no list of tools, or two of them, or one and
                `search_tools`, have one name; `top_k` is no whole number of at least 1; `always`
                names a tool that is not there, or all of them.
        """
        self.id = id
        self._tools = _by_name(tools)
        shown = frozenset(checked_names("ToolSearch", "always", always))
        for name in sorted(shown):
            if name not in self._tools:
                msg = f"ToolSearch: always names {name!r}; the tools are {', '.join(self._tools)}"
                raise ConfigurationError(msg)
        self._always = {name: tool for name, tool in self._tools.items() if name in shown}
        hidden = [tool for name, tool in self._tools.items() if name not in shown]
        if not hidden:
            msg = "ToolSearch: nothing is left to search; give tools that always does not name"
            raise ConfigurationError(msg)
        self._index = _Index(hidden, top_k)

    def process_input_step(self, args: ProcessInputStepArgs) -> ProcessInputStepResult:
        """Add the search, and what was found with it, to the tools of the step."""
        loaded: dict[str, Tool] = args.state.setdefault("loaded", {})
        mine = {SEARCH: _SearchTools(self._index, loaded), **self._always, **loaded}
        twice = next((name for name in (SEARCH, *self._tools) if name in args.tools), None)
        if twice is not None:
            msg = (
                f"the step has a tool {twice!r} already; give it to the agent or to ToolSearch, "
                "and let an agent have one ToolSearch"
            )
            raise ConfigurationError(msg)
        return ProcessInputStepResult(
            tools={**args.tools, **mine}, active_tools=[*args.active_tools, *mine]
        )


def _by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """The tools by name.

    Raises:
        ConfigurationError: they are no list, an element is no tool, or a name is taken.
    """
    if not isinstance(tools, Sequence) or isinstance(tools, str) or not tools:
        msg = f"ToolSearch: tools must be a list of tools, not {tools!r:.80}"
        raise ConfigurationError(msg)
    found: dict[str, Tool] = {}
    for place, tool in enumerate(tools):
        if isinstance(tool, type) or not isinstance(tool, Tool):
            msg = f"ToolSearch: tools[{place}] is {tool!r:.80}; make it a tool with @tool"
            raise ConfigurationError(msg)
        if tool.name == SEARCH or tool.name in found:
            msg = f"ToolSearch: tools[{place}]: the name {tool.name!r} is taken; give it another"
            raise ConfigurationError(msg)
        found[tool.name] = tool
    return found


class _Index:
    """The tools that can be found. What a name says counts twice."""

    def __init__(self, tools: list[Tool], most: int) -> None:
        self.tools = tools
        self._most = most
        texts = [terms_of(tool.name) * 2 + terms_of(tool.description) for tool in tools]
        self._ranks = Bm25(texts)

    def best(self, query: str) -> list[Tool]:
        """The tools that a query is about, the best first."""
        return [self.tools[place] for place in self._ranks.best(terms_of(query), self._most)]


class _SearchTools:
    """The tool that finds tools, for one run: what it finds is noted in `loaded`."""

    name = SEARCH

    def __init__(self, index: _Index, loaded: dict[str, Tool]) -> None:
        self._index = index
        self._loaded = loaded
        self.description = (
            "Find tools by what they do. What is found can be called from your next answer on. "
            f"{len(index.tools)} tools can be found."
        )
        self.parameters: dict[str, Any] = {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": "what the tool has to do, in a few words",
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        }

    def execute(self, args: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:  # noqa: ARG002 - a tool's signature
        """Search, and load what is found.

        Raises:
            ToolArgumentsError: there is no query.
        """
        query = args.get("query") if isinstance(args, Mapping) else None
        if not isinstance(query, str) or not query.strip():
            msg = 'give the arguments {"query": "what the tool has to do"}'
            raise ToolArgumentsError(msg, tool_name=SEARCH)
        found = self._index.best(query)
        self._loaded |= {tool.name: tool for tool in found}
        if not found:
            return {"tools": [], "hint": "Nothing fits. Try other words."}
        return {"tools": [{"name": t.name, "description": t.description} for t in found]}
