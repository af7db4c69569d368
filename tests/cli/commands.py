"""The command line as tests run it, and the agents that they run it on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

COMMAND = [sys.executable, "-W", "error", "-c", "from streampipe.cli import main; main()"]
PLAIN = {"COLUMNS": "100", "NO_COLOR": "1"}
WIDE = "200"  # columns: no cell of a table has to break

AGENTS = """
from dataclasses import replace

from streampipe import Agent, TextDelta
from streampipe.testing import ScriptedModel, call, fail


class Redact:
    id = "redact"

    def process_output_stream(self, args):
        if isinstance(args.part, TextDelta):
            return replace(args.part, text=args.part.text.replace("swordfish", "[secret]"))
        return args.part


class RedactInPlace:
    id = "redact-in-place"

    def process_output_stream(self, args):
        if isinstance(args.part, TextDelta):
            args.part.text = args.part.text.replace("swordfish", "[secret]")
        return args.part


class Guard:
    id = "guard"

    def process_output_stream(self, args):
        if isinstance(args.part, TextDelta) and "swordfish" in args.part.text:
            args.abort("a password")
        return args.part


class Broken:
    id = "broken"

    def process_output_stream(self, args):
        raise KeyError("oops")


class Refuse:
    id = "refuse"

    def process_input(self, args):
        args.abort("asks too much")


class Again:
    id = "again"

    def process_api_error(self, args):
        return {"retry": True}


ran = []


def ring(times: int) -> str:
    '''Ring the bell.'''
    ran.append(times)
    return "rang"


def said(*turns):
    return ScriptedModel(turns, repeat=True)


greeter = Agent(model=said(["Hello ", "there\\n", "\\u00e9\\u2028!"]))
ringer = Agent(model=said([call("ring", {"times": 2})], ["Done."]), tools=[ring])
failing = Agent(model=said(["Half ", fail(status=503)]))
guarded = Agent(model=said(["It is ", "swordfish"]), output_processors=[Guard()])
broken = Agent(model=said(["Hello"]), output_processors=[Broken()])
redacting = Agent(model=said(["swordfish"]), tools=[ring], output_processors=[Redact()])
in_place = Agent(model=said(["swordfish"]), output_processors=[RedactInPlace()])
strict = Agent(model=said(["no"]), input_processors=[Refuse()], error_processors=[Again()])
modelless = Agent()
number = 7
nothing = None
"""

RunCommand = Callable[..., Any]
"""Runs the command line with these arguments; gives click's result, which has no stable type."""
