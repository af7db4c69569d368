"""`ToolSearch`: what a model sees before it has searched, and what after."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from streampipe import Agent, tool
from streampipe.contracts import ProcessInputStepArgs, Tool
from streampipe.errors import ConfigurationError, ProcessorError
from streampipe.processors import ToolSearch
from streampipe.processors._bm25 import Bm25, terms_of
from streampipe.testing import ScriptedModel, call, check_processor

EXAMPLES = max(1_000, 10 * settings().max_examples)
WORDS = st.sampled_from(["send", "mail", "parcel", "weather", "read", "city", "now"])


class Named:
    """A tool by its name and description alone."""

    def __init__(self, name: str, description: str) -> None:
        """Take what is indexed."""
        self.name = name
        self.description = description
        self.parameters: dict[str, Any] = {"type": "object"}

    def execute(self, args: Mapping[str, Any], context: Any) -> str:
        """Say its name."""
        return self.name


@tool
def clock() -> str:
    """Tell the time."""
    return "noon"


TOOLS: list[Tool] = [
    Named("get_weather", "Tell how the weather of a city is."),
    Named("getForecast", "Tell how the weather of the next days will be."),
    Named("send_mail", "Send a letter to somebody."),
    Named("read_mail", "List the letters that came."),
    Named("track_parcel", "Find out where a parcel is."),
]


def search(query: str) -> Any:
    """A call of the search."""
    return call("search_tools", {"query": query})


async def seen(script: list[Any], processor: Any, **options: Any) -> tuple[Any, list[list[str]]]:
    """The result of a run, and the names of the tools that each step was shown."""
    model = ScriptedModel(script)
    options = {"tools": [clock], **options}
    agent = Agent(model=model, input_processors=[processor], **options)
    result = await agent.generate("hi")
    return result, [[spec.name for spec in request.tools] for request in model.requests]


def names_in(result: Any, step: int = 0) -> list[str]:
    """The names that a search has listed."""
    return [found["name"] for found in result.steps[step].tool_results[0].result["tools"]]


async def test_what_is_found_is_there_in_the_next_step() -> None:
    """The agent's own tools are there from the start, nothing else is."""
    script = [[search("the weather of a city")], [call("get_weather")], ["sunny"]]
    result, shown = await seen(script, ToolSearch(TOOLS, top_k=2))
    assert shown == [
        ["clock", "search_tools"],
        ["clock", "search_tools", "get_weather", "getForecast"],
        ["clock", "search_tools", "get_weather", "getForecast"],
    ]
    assert result.steps[0].tool_results[0].result == {
        "tools": [
            {"name": "get_weather", "description": "Tell how the weather of a city is."},
            {
                "name": "getForecast",
                "description": "Tell how the weather of the next days will be.",
            },
        ]
    }
    assert result.steps[1].tool_results[0].result == "get_weather"


async def test_more_is_found_by_another_search() -> None:
    """What was found before stays, and is there once."""
    script = [[search("weather")], [search("parcel")], [search("weather parcel")], ["ok"]]
    _, shown = await seen(script, ToolSearch(TOOLS, top_k=1))
    assert shown[1] == ["clock", "search_tools", "get_weather"]
    assert shown[2] == shown[3] == ["clock", "search_tools", "get_weather", "track_parcel"]


async def test_some_are_always_there() -> None:
    """Those are not searched."""
    script = [[search("weather")], ["ok"]]
    result, shown = await seen(script, ToolSearch(TOOLS, always=["get_weather"]))
    assert shown[0] == ["clock", "search_tools", "get_weather"]
    assert names_in(result) == ["getForecast"]


async def test_a_tool_that_was_not_found_cannot_be_called() -> None:
    """The model is told what there is."""
    result, _ = await seen([[call("send_mail")], ["ok"]], ToolSearch(TOOLS))
    assert "send_mail" in result.steps[0].tool_errors[0].error
    assert "search_tools" in result.steps[0].tool_errors[0].error


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("weather", ["get_weather", "getForecast"]),
        ("FORECASTS", ["getForecast"]),
        ("send_mail", ["send_mail", "read_mail"]),
        ("letter", ["send_mail", "read_mail"]),
        ("parcels, please!", ["track_parcel"]),
        ("quantum", []),
        ("...", []),
    ],
)
async def test_tools_are_ranked_by_their_words(query: str, names: list[str]) -> None:
    """A name counts more than a description; case, plural and how a name is written do not."""
    result, _ = await seen([[search(query)], ["ok"]], ToolSearch(TOOLS))
    assert names_in(result) == names
    assert ("hint" in result.steps[0].tool_results[0].result) is not bool(names)


async def test_a_name_counts_more_than_a_description() -> None:
    """Although that is shorter, and stands first."""
    tools: list[Tool] = [
        Named("compress", "Make a parcel."),
        Named("parcel", "Find out where something is that was sent some days ago."),
    ]
    result, _ = await seen([[search("parcel")], ["ok"]], ToolSearch(tools))
    assert names_in(result) == ["parcel", "compress"]


def test_words_are_unicode_s() -> None:
    """Of every script, also where nothing stands between them, however they are written."""
    assert terms_of("天気 can't Straße, E\u0301TE\u0301 3.14") == [
        "天",
        "気",
        "can't",
        "strasse",
        "été",
        "3.14",
    ]


@pytest.mark.parametrize("arguments", [{}, {"query": 1}, {"query": "  "}, {"words": "x"}])
async def test_a_search_without_a_query_is_told_so(arguments: Any) -> None:
    """In words that a model can act on."""
    result, _ = await seen([[call("search_tools", arguments)], ["ok"]], ToolSearch(TOOLS))
    assert 'give the arguments {"query":' in result.steps[0].tool_errors[0].error


async def test_it_joins_the_tools_that_others_chose() -> None:
    """Where a processor before it has hidden some, they stay hidden."""

    class NoClock:
        id = "no-clock"

        def process_input_step(self, args: ProcessInputStepArgs) -> dict[str, Any]:
            """Hide the clock."""
            return {"active_tools": []}

    model = ScriptedModel([[search("parcel")], ["ok"]])
    agent = Agent(model=model, tools=[clock], input_processors=[NoClock(), ToolSearch(TOOLS)])
    await agent.generate("hi")
    shown = [[spec.name for spec in request.tools] for request in model.requests]
    assert shown == [["search_tools"], ["search_tools", "track_parcel"]]


async def test_what_was_found_survives_a_retry() -> None:
    """A rejected attempt takes back what was said, not what is known."""

    class Judge:
        id = "judge"

        def process_output_step(self, args: Any) -> None:
            """Reject a draft."""
            if args.text == "draft":
                args.abort("better", retry=True)

    script = [[search("parcel")], ["draft"], ["fine"]]
    options = {"output_processors": [Judge()], "max_processor_retries": 1}
    result, shown = await seen(script, ToolSearch(TOOLS), **options)
    assert result.text == "fine"
    assert shown[1] == shown[2] == ["clock", "search_tools", "track_parcel"]


async def test_one_instance_serves_two_runs_at_a_time() -> None:
    """What one run has found the other has not."""
    shared = ToolSearch(TOOLS)
    both = await asyncio.gather(
        seen([[search("parcel")], ["ok"]], shared), seen([[call("clock")], ["ok"]], shared)
    )
    assert [shown[1] for _, shown in both] == [
        ["clock", "search_tools", "track_parcel"],
        ["clock", "search_tools"],
    ]


async def test_a_name_that_the_agent_has_too_ends_the_run() -> None:
    """Before a model is called; a second search has the same name."""
    with pytest.raises(ProcessorError, match="a tool 'send_mail' already"):
        await seen(["ok"], ToolSearch(TOOLS), tools=[TOOLS[2]])
    twice = [ToolSearch(TOOLS[:2]), ToolSearch(TOOLS[2:], id="more")]
    agent = Agent(model=ScriptedModel(["ok"]), input_processors=[*twice])
    with pytest.raises(ProcessorError, match="let an agent have one ToolSearch"):
        await agent.generate("hi")


@given(st.lists(st.lists(WORDS, max_size=6), max_size=8), st.lists(WORDS, max_size=3))
def test_a_text_is_found_if_and_only_if_it_has_a_word(
    texts: list[list[str]], query: list[str]
) -> None:
    """The better one first, equal ones in their order, however often it is asked."""
    index = Bm25(texts)
    best = index.best(query, 99)
    assert sorted(best) == [n for n, text in enumerate(texts) if set(text) & set(query)]
    assert best == Bm25(texts).best(query, 99)
    assert index.best(query, 2) == best[:2]
    assert index.best([*query, *query[:1]], 99) == best
    places = {tuple(texts[n]): [m for m in best if texts[m] == texts[n]] for n in best}
    assert all(same == sorted(same) for same in places.values())


@given(st.lists(WORDS, min_size=1, max_size=4), WORDS)
def test_a_word_more_that_was_asked_for_is_no_worse(text: list[str], word: str) -> None:
    """Of two texts that differ in a word, the one that has it stands before the other."""
    assume(word not in text)
    assert Bm25([[*text, "other"], [*text, word]]).best([*text, word], 2)[0] == 1


@given(st.lists(WORDS, min_size=1, max_size=4), WORDS)
def test_a_text_that_says_nothing_else_is_better(more: list[str], word: str) -> None:
    """A word in a long text is there by chance."""
    assume(word not in more)
    assert Bm25([[*more, word], [word]]).best([word], 2) == [1, 0]


@pytest.mark.parametrize(
    ("tools", "options", "said"),
    [
        ([], {}, r"tools must be a list of tools, not \[\]"),
        (clock, {}, r"tools must be a list, not FunctionTool"),
        ([len], {}, r"tools\[0\] is <built-in function len>; make it a tool with @tool"),
        ([clock, Named], {}, r"tools\[1\] is .*; make it a tool with @tool"),
        ([clock, clock], {}, r"tools\[1\]: the name 'clock' is taken"),
        ([Named("search_tools", "")], {}, r"tools\[0\]: the name 'search_tools' is taken"),
        ([clock], {"top_k": 0}, "top_k must be a whole number of 1 or more, not 0"),
        ([clock], {"always": [""]}, "always must be a list of names"),
        ([clock], {"always": ["watch"]}, "always names 'watch'; the tools are clock"),
        ([clock], {"always": ["clock"]}, "nothing is left to search"),
    ],
)
def test_a_wrong_option_is_refused(tools: Any, options: Any, said: str) -> None:
    """When it is made, by the class's name."""
    with pytest.raises(ConfigurationError, match=f"^ToolSearch: {said}"):
        ToolSearch(tools, **options)


def test_it_keeps_the_laws_of_processors() -> None:
    """In generated runs, whatever the model says."""
    check_processor(lambda: ToolSearch(TOOLS), max_examples=EXAMPLES)
