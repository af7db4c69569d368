"""Processors by name: what each does, how a line of them is read, and what is installed."""

from __future__ import annotations

import asyncio
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streampipe import Agent, tool
from streampipe.errors import ConfigurationError
from streampipe.processors import _registry, known_processors, processors_from
from streampipe.processors._built_in import BUILT_IN
from streampipe.processors._processor_text import Written, parse
from streampipe.testing import ScriptedModel, call, delay, run_virtual
from tests.processors.distributions import SHOUTS, install

KEY = "sk-4f9a77e1b2c3d4e5f60718"


@tool
def pay(amount: int) -> str:
    """Pay an amount."""
    return "paid"


@tool
def look(word: str) -> str:
    """Look something up."""
    return "found"


def made(line: str, *turns: Any, **options: Any) -> tuple[Any, ScriptedModel]:
    """What becomes of an answer with the processors of a line, and the model that was asked."""
    model = ScriptedModel(turns)

    async def run() -> Any:
        agent = Agent(model=model, tools=[pay, look], **processors_from(line))
        async with agent.stream("hi", **options) as stream:
            chunks = [chunk async for chunk in stream]
        return chunks, (await stream.result() if chunks[-1].reason != "error" else None)  # type: ignore[attr-defined]  # the last is a finish

    return run_virtual(run()), model


def answer(line: str, *turns: Any, **options: Any) -> Any:
    """The result of that run."""
    return made(line, *turns, **options)[0][1]


def pieces(line: str, *turns: Any) -> list[str]:
    """The texts that the client gets in that run."""
    (chunks, _), _ = made(line, *turns)
    return [chunk.text for chunk in chunks if chunk.type == "text-delta"]


# --- what each name does -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "said", "left"),
    [
        ("redact:pii", "Ask ada@example.com now.", "Ask [EMAIL] now."),
        ("redact:urls+pii", "ada@example.com, https://a.example/b c", "[EMAIL], [URL] c"),
        ("warn:pii", "Ask ada@example.com now.", "Ask ada@example.com now."),
        ("pii", "Ask ada@example.com now.", "Ask ***@example.com now."),
        ("pii:card", "Ask ada@example.com now.", "Ask ada@example.com now."),
        ("pii:email+card;method=placeholder", "Ask ada@example.com.", "Ask [EMAIL]."),
        ("normalize", "of\u200bfi\ufb01", "offifi"),
        ("normalize:NFC", "of\u200bfi\ufb01", "offi\ufb01"),
        ("limit:3tokens", "one two three four five six", "one two three "),
        ("limit:5chars", "one two three", "one t"),
        ("stop:wo,stop:hree", "one two three", "one t"),
        (r"stop:\, two", "one, two", "one"),
        (r"stop:\n\n", "one\ntwo\n\nthree", "one\ntwo"),
        ("think", "<think>Hm.</think>Yes.", "Yes."),
        ("think:plan+note", "<plan>Hm.</plan>Y<note>!</note>es.", "Yes."),
        ("rechunk:word,batch:20ms,smooth:10ms", "one two three", "one two three"),
        ("first:5s,idle:10s,deadline:2m,heartbeat:1.5s", "one two three", "one two three"),
        ("tools:-pay,cost:0.50", "one two three", "one two three"),
    ],
)
def test_a_name_does_its_work(line: str, said: str, left: str) -> None:
    """What is found is dealt with, and the rest of the answer is as it was."""
    cut = [said[:7], said[7:]]
    assert answer(line, cut).text == left


@pytest.mark.parametrize(
    ("line", "given", "left"),
    [
        ("rechunk:word", ["one t", "wo"], ["one ", "two"]),
        ("rechunk:grapheme", ["ab"], ["a", "b"]),
        ("batch:2", ["a", "b", "c"], ["ab", "c"]),
        ("batch:20ms", ["a", "b", delay(1), "c"], ["ab", "c"]),
        ("batch:2;wait=20ms", ["a", "b", "c", delay(1), "d"], ["ab", "c", "d"]),
        ("smooth:10ms", ["one two"], ["one ", "two"]),
        ("smooth:10ms;by=grapheme", ["ab"], ["a", "b"]),
    ],
)
def test_a_name_cuts_and_joins(line: str, given: list[Any], left: list[str]) -> None:
    """The text comes in the pieces that were asked for."""
    assert pieces(line, given) == left


def test_a_pace_is_kept() -> None:
    """A time is read in its unit: milliseconds, seconds, minutes."""

    async def took(line: str) -> float:
        model = ScriptedModel([["one two three"]])
        await Agent(model=model, **processors_from(line)).generate("hi")
        return asyncio.get_running_loop().time()

    assert run_virtual(took("smooth:10ms")) == pytest.approx(0.02)
    assert run_virtual(took("smooth:1.5s")) == pytest.approx(3)
    assert run_virtual(took("smooth:2m")) == pytest.approx(240)


@pytest.mark.parametrize(
    ("line", "given", "fails"),
    [
        ("first:5s", [delay(6), "one"], True),
        ("first:5s", ["one", delay(6), "two"], False),
        ("idle:5s", ["one", delay(6), "two"], True),
        ("idle:5s", ["one", delay(3), "two", delay(3), "three"], False),
        ("deadline:5s", ["one", delay(3), "two", delay(3), "three"], True),
        ("deadline:1m", ["one", delay(3), "two", delay(3), "three"], False),
    ],
)
def test_a_limit_of_time_fails_the_run(line: str, given: list[Any], *, fails: bool) -> None:
    """A model that takes too long is given up."""
    (chunks, _), _ = made(line, given)
    assert (chunks[-1].reason == "error") is fails
    assert any(chunk.type == "error" for chunk in chunks) is fails


def test_a_heartbeat_is_sent_into_silence() -> None:
    """A sign of life for every five seconds without a chunk."""
    (chunks, _), _ = made("heartbeat:5s", ["one", delay(12), "two"])
    assert [chunk.type for chunk in chunks].count("data-heartbeat") == 2


def test_thoughts_become_reasoning() -> None:
    """What stood between the tags is not lost."""
    assert answer("think", ["<think>Hm.</think>Yes."]).reasoning == "Hm."


def test_a_block_is_told_by_what_was_written() -> None:
    """The tripwire names the element of the line."""
    blocked = answer("block:secrets+pii", [f"It is {KEY}."])
    assert (blocked.text, blocked.tripwire.processor_id) == ("", "block:secrets+pii")


def test_a_block_with_retry_asks_again() -> None:
    """The rejected answer is gone; another one is asked for."""
    result = answer("block:secrets;retry=yes", [f"It is {KEY}."], ["No."], max_processor_retries=1)
    assert (result.text, result.retries) == ("No.", 1)


@pytest.mark.parametrize("line", ["warn:pii", "pii;strategy=warn"])
def test_a_warning_goes_to_the_log(line: str, caplog: pytest.LogCaptureFixture) -> None:
    """It names the element and the rule, never what was found."""
    caplog.set_level(logging.WARNING, "streampipe")
    answer(line, ["Ask ada@exa", "mple.com now."])
    (record,) = caplog.records
    assert repr(line.partition(";")[0]) in record.getMessage()
    assert "email" in record.getMessage()
    assert "ada" not in record.getMessage()


def test_covers_says_where_to_look() -> None:
    """Reasoning and text, unless a line says it otherwise."""
    result = answer("redact:pii;covers=tool-results", ["Ask ada@example.com."])
    assert result.text == "Ask ada@example.com."


def test_a_full_answer_closes_the_model_s_stream() -> None:
    """The limiter stands in both lists, so nothing more is read, and the reason is `length`."""
    (_, result), model = made("limit:2tokens", ["one ", "two ", "three ", *["more "] * 50])
    assert (result.text, result.finish_reason) == ("one two ", "length")
    lists = processors_from("limit:2tokens")
    assert lists["input_processors"] == lists["output_processors"] != []
    del model


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("tools:-pay", "pay"),
        ("tools:look", "pay"),
        ("tools:-look", None),
        ("tools:pay", None),
        ("tools;calls=1", None),
        ("tools:pay+look;calls=1", None),
    ],
)
def test_tools_are_allowed_and_denied(line: str, refused: str | None) -> None:
    """With a minus a tool is denied, without it the others are."""
    result = answer(line, [call("pay", {"amount": 1})], ["Done."])
    assert (result.tripwire is not None) is (refused is not None)
    assert len(result.tool_results) == (refused is None)


def test_calls_of_tools_are_counted() -> None:
    """One more than `calls` is blocked."""
    calls = [call("pay", {"amount": 1}), call("pay", {"amount": 2})]
    assert answer("tools;calls=1", calls, ["Done."]).tripwire.processor_id == "tools"


def test_a_rejected_call_is_asked_for_again() -> None:
    """With `strategy=retry` the model may do better."""
    turns: list[Any] = [[call("pay", {"amount": 1})], ["Done."]]
    result = answer("tools:-pay;strategy=retry", *turns, max_processor_retries=1)
    assert (result.text, result.retries) == ("Done.", 1)


def test_costs_are_for_the_input_list() -> None:
    """A call is blocked before the model is asked, so the guard stands there only."""
    lists = processors_from("cost:0.50")
    assert [each.id for each in lists["input_processors"]] == ["cost:0.50"]
    assert lists["output_processors"] == lists["error_processors"] == []


def test_every_name_stands_in_a_list() -> None:
    """Each built-in name has a help, a place, and an element to show."""
    lines = {
        "batch": "8",
        "block": "pii",
        "cost": "1",
        "deadline": "1s",
        "first": "1s",
        "heartbeat": "1s",
        "idle": "1s",
        "limit": "9chars",
        "rechunk": "line",
        "redact": "pii",
        "smooth": "1s",
        "stop": "x",
        "tools": "x",
        "warn": "pii",
    }
    for known in BUILT_IN.values():
        argument = lines.get(known.name)
        lists = processors_from(f"{known.name}:{argument}" if argument else known.name)
        assert any(lists.values())
        assert known.help.endswith(".")
        assert known.usage.startswith(known.name)


def test_two_runs_at_once_do_not_meet() -> None:
    """An agent's processors of a line are shared by its runs, and keep what they note apart."""

    async def both() -> list[str]:
        model = ScriptedModel([["Ask ada@exa", delay(1), "mple.com"]] * 2)
        agent = Agent(model=model, **processors_from("redact:pii,tools;calls=1"))
        results = await asyncio.gather(agent.generate("a"), agent.generate("b"))
        return [result.text for result in results]

    assert run_virtual(both()) == ["Ask [EMAIL]", "Ask [EMAIL]"]


# --- the order and the ids -----------------------------------------------------------------------


def test_they_stand_in_the_order_of_the_line() -> None:
    """What the first has made of the text is what the second sees."""
    assert pieces("rechunk:word,batch:2", ["one two three"]) == ["one two ", "three"]
    assert pieces("batch:2,rechunk:word", ["one two three"]) == ["one ", "two ", "three"]
    said = ["Ask ada@example.com now."]
    assert answer("stop:[EMAIL],redact:pii", said).text == "Ask [EMAIL] now."
    assert answer("redact:pii,limit:9chars", said).text == "Ask [EMAI"


def test_the_same_twice_has_two_ids() -> None:
    """Their states do not collide."""
    made = processors_from("redact:pii,redact:pii,redact:urls,redact:pii")["output_processors"]
    ids = [each.id for each in made]
    assert ids == ["redact:pii", "redact:pii#2", "redact:urls", "redact:pii#3"]
    assert answer("redact:pii,redact:pii", ["Ask ada@example.com"]).text == "Ask [EMAIL]"


def test_ids_of_those_beside_are_taken() -> None:
    """A line may name what an agent has already."""
    own = processors_from("redact:pii,batch:2")["output_processors"]
    (more,) = processors_from("redact:pii", beside=own)["output_processors"]
    assert more.id == "redact:pii#2"


# --- the line ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("redact:pii", ["redact:pii"]),
        (" redact : pii , batch:20ms ", ["redact:pii", "batch:20ms"]),
        ("block:pii ; retry = yes", ["block:pii;retry=yes"]),
        ("stop:a:b", ["stop:a:b"]),
        ("stop:a=b", ["stop:a=b"]),
        (r"stop:a\,b", [r"stop:a\,b"]),
        (r"stop:\ end", [r"stop:\ end"]),
        (r"stop:\\\;", [r"stop:\\\;"]),
        (r"stop:\n\t", [r"stop:\n\t"]),
        ("stop:\\\n", [r"stop:\n"]),
        (r"a;b=c=d", ["a;b=c=d"]),
    ],
)
def test_a_line_is_read(line: str, names: list[str]) -> None:
    """White space around its parts does not count, and only the first colon parts."""
    assert list(map(str, parse(line))) == names


TEXTS = st.text(min_size=1, max_size=12)
WRITTEN = st.builds(
    Written,
    st.from_regex(r"[A-Za-z][A-Za-z0-9._-]{0,8}", fullmatch=True),
    st.none() | TEXTS,
    st.dictionaries(st.from_regex("[a-z][a-z0-9_]{0,5}", fullmatch=True), TEXTS, max_size=3).map(
        lambda options: tuple(options.items())
    ),
)


@given(st.lists(WRITTEN, min_size=1, max_size=4))
def test_what_is_written_is_read_again(elements: list[Written]) -> None:
    """Whatever an argument holds, there is a way to write it."""
    assert parse(",".join(map(str, elements))) == elements


SIGNS = st.text(st.sampled_from("redactlimp:;,=+-\\ \n0259sm.\u200b\u0663"), max_size=20)
LIKELY = st.builds(
    "{}{}{}{}".format,
    st.sampled_from([*BUILT_IN, "no-such"]),
    st.sampled_from(["", ":", ";", " "]),
    SIGNS | st.sampled_from(["pii", "20ms", "8", "9chars", "word", "-a+b", "NFC"]),
    st.sampled_from(["", ";covers=text", ";retry=yes", ";wait=1s", ";by=", ";strategy=warn", ","]),
)


@given(st.text(max_size=30) | SIGNS | LIKELY)
@example("limit:٣tokens")
@example("batch:" + "9" * 5_000)
@example("smooth:" + "9" * 500 + "s")
@example("a" * 5_000)
@example("redact:pii," * 300)
def test_whatever_is_written_is_made_or_refused(line: str) -> None:
    """There is no other error than one that says where in the line it is."""
    told = ""
    try:
        assert any(processors_from(line).values())
    except ConfigurationError as error:
        told = str(error)
    assert not told or re.match(r"processors: at character \d+, ", told)


REFUSED = {
    "": (1, "a processor is missing here"),
    "  ": (1, "a processor is missing here"),
    "redact:pii,": (12, "a processor is missing here"),
    "redact:pii,,think": (12, "a processor is missing here"),
    ":pii": (1, "it has to begin with a name"),
    "pii email": (1, "it has to begin with a name"),
    r"pi\,i": (1, "it has to begin with a name"),
    "think, redact:": (8, "write an argument behind the colon"),
    "think,redact": (
        7,
        "redact needs an argument: redact:PRESET+...; it hides what a preset finds: pii, secrets",
    ),
    "secrets": (1, "unknown processor 'secrets'; did you mean 'redact:secrets'? (known: redact, "),
    "redact:pii;covers": (12, "an option is written as name=value"),
    "redact:pii;covers=": (12, "an option is written as name=value"),
    "redact:pii; =text": (13, "an option is written as name=value"),
    "block:pii;retry=no;retry=no": (20, "the option retry stands there twice"),
    "redact:pii;retry=yes": (1, "redact has no option 'retry'; its options: covers"),
    "stop:x;y=z": (1, "stop has no option 'y'; it has none"),
    r"stop:\x": (6, "a backslash stands before a sign"),
    "think,stop:\\": (12, "a backslash stands before a sign"),
    "redcat:pii": (1, "unknown processor 'redcat'; did you mean 'redact'? (known: redact, block"),
    "redact:pix": (1, "RegexFilter: presets are pii, secrets, urls; there is no 'pix'"),
    "redact:pii+": (1, "presets are pii, secrets, urls; there is no ''"),
    "redact:pii;covers=all": (1, "covers takes text, reasoning, tool-arguments, tool-results"),
    "block:pii;retry=often": (1, "retry must be one of yes, no, not 'often'"),
    "pii:name": (1, "PIIDetector: types must be some of email, phone"),
    "pii;strategy=hide": (1, "strategy must be one of redact, block, warn, filter"),
    "pii;strategy=warn;method=hash": (1, "method is for strategy='redact'"),
    "normalize:NFD": (1, "UnicodeNormalizer: form must be one of NFKC, NFC"),
    "limit:400": (1, "limit takes 400tokens or 2000chars, not '400'"),
    "limit:0tokens": (1, "TokenLimiter: output must be a whole number of 1 or more"),
    "limit:0chars": (1, "limit_text: "),
    "batch:few": (1, "batch takes a count or a time, 8 or 20ms, not 'few'"),
    "batch:0": (1, "size must be a whole number of 1 or more, not 0"),
    "batch:20ms;wait=20ms": (1, "batch has a time already"),
    "batch:8;wait=9": (1, "a time is a number and ms, s or m"),
    "smooth:fast": (1, "a time is a number and ms, s or m, such as 20ms or 1.5s, not 'fast'"),
    "smooth:10ms;by=letter": (1, "by is 'letter'; give one of 'grapheme', 'word'"),
    "rechunk:letter": (1, "rechunk: by is 'letter'; give one of 'grapheme', 'word'"),
    "deadline:1h": (1, "a time is a number and ms, s or m"),
    "idle:0s": (1, "timeout_idle: seconds must be above 0 s"),
    "first:-1s": (1, "a time is a number and ms, s or m"),
    "heartbeat:": (1, "write an argument behind the colon"),
    "think:<x>": (1, "split_tags: "),
    "tools": (1, "ToolCallGuard: give allow, deny, "),
    "tools:-": (1, "deny must be a list of names"),
    "tools:a+-a": (1, "allow names 'a', which deny or allow rules out"),
    "tools;calls=two": (1, "a count is a whole number, such as 8, not 'two'"),
    "tools:a;strategy=warn": (1, "strategy must be one of block, retry"),
    "cost:free": (1, "cost takes dollars, such as 0.50, not 'free'"),
    "cost:0": (1, "CostGuard: limit must be a finite number above 0"),
}


@pytest.mark.parametrize("line", REFUSED)
def test_a_bad_line_is_refused_with_the_place(line: str) -> None:
    """What is wrong, where it stands, and what there is instead."""
    place, told = REFUSED[line]
    with pytest.raises(ConfigurationError) as caught:
        processors_from(line)
    assert str(caught.value).startswith(f"processors: at character {place}, ")
    assert told in str(caught.value)


@pytest.mark.parametrize("line", [None, 7, ["redact:pii"], b"redact:pii"])
def test_what_is_no_text_is_refused(line: Any) -> None:
    """A list is not read as one."""
    with pytest.raises(ConfigurationError, match="processors: must be a text such as"):
        processors_from(line)


# --- what is installed ---------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path, for distributions."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


def problem_of(line: str) -> str:
    """What a line is refused with."""
    with pytest.raises(ConfigurationError) as caught:
        processors_from(line)
    return str(caught.value)


def brought() -> dict[str, Any]:
    """What is installed, by name."""
    return {known.name: known for known in known_processors() if known.source != "streampipe"}


def test_a_distribution_brings_a_processor(site: Path) -> None:
    """Its name takes an argument and options as a built-in one does, and it is listed."""
    install(site, "brings_shout", {"shout": "brings_shout:Shout"})
    assert answer("shout,redact:pii", ["hello"]).text == "HELLO"
    assert answer("shout:2;mark=?", ["hello"]).text == "HELLO??"
    known = brought()["shout"]
    assert (known.usage, known.options) == ("shout[:MARKS]", ("mark",))
    assert known.help == "Says it in capitals, with so many marks behind."
    assert (known.source, known.problem) == ("brings_shout 1.2", None)


def test_an_installed_processor_keeps_its_id_while_it_can(site: Path) -> None:
    """A second one gets a number; an object that stands there twice is one processor."""
    once = "\n\nONCE = Shout(None)\n\ndef once(argument):\n    return ONCE\n"
    points = {"shout": "brings_ids:Shout", "once": "brings_ids:once"}
    install(site, "brings_ids", points, module=SHOUTS + once)
    made = processors_from("shout,shout:1")["output_processors"]
    assert [each.id for each in made] == ["shout", "shout#2"]
    first, second = processors_from("once,once")["output_processors"]
    assert first is second
    assert first.id == "shout"


FACTORIES = """
from streampipe import operators as ops

lists = 7
def operator(argument): return ops.stop_at(argument or "x")
def uncalled(argument): return ops.text
def nothing(argument): return None
def a_class(argument): return Fixed
def raises(argument): raise KeyError("oops")
def none(): return None
def two(argument, other): return None
async def waits(argument): return None

class Fixed:
    id = property(lambda self: "fixed")
    def process_output_stream(self, args): return args.part
    def process_input(self, args): return None
    def process_api_error(self, args): return None

def fixed(argument): return Fixed()

class Brings:
    id = "brings"
    def stream_operator(self, args): return ops.stop_at("two")

def brings(argument): return Brings()

class Nameless:
    def process_input(self, args): return None

def nameless(argument): return Nameless()
"""


@pytest.fixture
def factories(site: Path) -> None:
    """A distribution of good and bad factories."""
    names = re.findall(r"def (\w+)\((?!self)|^(lists)", FACTORIES, re.MULTILINE)
    points = {name or other: f"brings_all:{name or other}" for name, other in names}
    points |= {"missing": "brings_all:no_such", "unheard": "no_such_module:x", "odd": "1 2"}
    install(site, "brings_all", points, module=FACTORIES)


def test_an_operator_is_as_good_as_a_processor(factories: None) -> None:
    """It stands among those of the output."""
    assert answer("operator:two", ["one two"]).text == "one "
    assert answer("brings", ["one two"]).text == "one "


def test_an_installed_processor_stands_where_it_has_hooks(factories: None) -> None:
    """It is the same object in each list."""
    lists = processors_from("fixed")
    (only,) = lists["input_processors"]
    assert lists["output_processors"] == lists["error_processors"] == [only]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("raises", "of brings_all 1.2 raised KeyError: 'oops'"),
        ("missing", "of brings_all 1.2 cannot be loaded (AttributeError: "),
        ("unheard", "of brings_all 1.2 cannot be loaded (ModuleNotFoundError: "),
        ("odd", "of brings_all 1.2 cannot be loaded ("),
        ("lists", "of brings_all 1.2 is a int; it has to be a plain function"),
        ("waits", "of brings_all 1.2 is a coroutine function; it has to be a plain function"),
        ("none", "of brings_all 1.2 takes no argument"),
        ("two", "of brings_all 1.2 raised TypeError: "),
        ("operator;x=y", "operator has no option 'x'; it has none"),
        ("uncalled", "uncalled of brings_all 1.2: text is not called"),
        ("nothing", "nothing of brings_all 1.2: None is no processor"),
        ("a_class", "a_class of brings_all 1.2: Fixed is a class; give an instance"),
        ("nameless", "nameless of brings_all 1.2: "),
        ("fixed,fixed", "another processor has the id 'fixed', and this one's cannot be changed"),
    ],
)
def test_a_factory_at_fault_is_named(factories: None, line: str, told: str) -> None:
    """With its distribution, and what it did wrong."""
    assert told in problem_of(line)


def test_a_listing_shows_what_cannot_be_used(factories: None) -> None:
    """The others can."""
    known = brought()
    assert known["operator"].problem is None
    for name in ("missing", "unheard", "odd", "lists", "waits", "none"):
        assert "brings_all 1.2" in known[name].problem


def test_a_module_that_ends_the_program_is_only_a_problem(site: Path) -> None:
    """As one does that lacks an extra."""
    install(site, "brings_exit", {"leaves": "brings_exit:x"}, module="raise SystemExit('no rich')")
    assert "of brings_exit 1.2 cannot be loaded (SystemExit: no rich)" in problem_of("leaves")


def test_a_built_in_name_cannot_be_taken(site: Path) -> None:
    """What is built in goes on, and whoever wants the name is told of."""
    install(site, "brings_redact", {"redact": "brings_redact:Shout"})
    assert answer("redact:pii", ["ada@example.com"]).text == "[EMAIL]"
    told = "the name 'redact' of brings_redact 1.2 is built in; it has to choose another"
    assert brought()["redact"].problem == told


def test_a_name_of_two_distributions_is_nobody_s(site: Path) -> None:
    """Neither is chosen by chance; both are named."""
    install(site, "brings_one", {"shout": "brings_one:Shout"})
    install(site, "brings_other", {"shout": "brings_other:Shout", "call": "brings_other:Shout"})
    told = problem_of("shout")
    assert "the name 'shout' is brought by " in told
    assert "brings_one 1.2" in told
    assert "brings_other 1.2" in told
    assert answer("call", ["hello"]).text == "HELLO"


def test_broken_metadata_is_a_problem_that_is_told(site: Path) -> None:
    """Nobody can read the entry points then; built-in names need none."""
    install(site, "brings_broken", {"shout": "x:y"})
    (info,) = site.glob("*.dist-info")
    (info / "entry_points.txt").write_text("[streampipe.processors]\nno value\n", encoding="utf-8")
    assert "the entry points of the installed distributions cannot be read" in problem_of("shout")
    with pytest.raises(ConfigurationError, match=r"look for a broken entry_points\.txt"):
        known_processors()
    assert answer("redact:pii", ["ada@example.com"]).text == "[EMAIL]"


def test_built_in_names_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading the metadata of all that is installed takes time."""
    asked: list[Any] = []

    def none(**which: str) -> list[Any]:
        asked.append(which)
        return []

    monkeypatch.setattr(_registry, "entry_points", none)
    processors_from("redact:pii,think")
    assert asked == []
    assert "unknown processor 'shout'" in problem_of("shout")
    assert asked == [{"group": "streampipe.processors"}]
