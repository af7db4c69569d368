"""Operators over streams of chunks, for use in `pipe()`.

By convention: `from streampipe import operators as ops`.
"""

if __name__ != "streampipe.operators":
    raise ImportError("import streampipe.operators, not operators")

from streampipe.operators._arrange import concat, create, feedback, of
from streampipe.operators._bridge import from_aiter, to_aiter
from streampipe.operators._check_async import Verdict, check_async, filter_async
from streampipe.operators._compose import Pipeline, branch, explain, pipe
from streampipe.operators._core import Flowable
from streampipe.operators._cut import limit_text, rechunk, split_tags, stop_at
from streampipe.operators._element import (
    distinct_until_changed,
    filter,
    flat_map,
    map,
    scan,
    stateful,
    take_while,
    tap,
)
from streampipe.operators._fuse import fusion, revealing
from streampipe.operators._hooks import ModelAnswer, ModelCall, StepInput
from streampipe.operators._inside import Record
from streampipe.operators._json import json_lines, json_objects
from streampipe.operators._kinds import (
    accumulate_text,
    map_text,
    of_type,
    reasoning,
    text,
    tool_calls,
)
from streampipe.operators._lift import (
    process_api_error,
    process_input,
    process_input_step,
    process_llm_request,
    process_llm_response,
    process_output_result,
    process_output_step,
    process_tool_result,
)
from streampipe.operators._map_async import map_async
from streampipe.operators._operator import Op as Operator
from streampipe.operators._output import (
    RemoteError,
    materialize_errors,
    raise_errors,
    to_jsonl,
    to_sse,
    to_wire,
)
from streampipe.operators._pace import batch, smooth
from streampipe.operators._parallel import parallel
from streampipe.operators._process import process, process_all
from streampipe.operators._record import Recorder, Recording
from streampipe.operators._recover import catch_api_error, fallback, retry_api
from streampipe.operators._rules import Match, block, detect, redact, replace
from streampipe.operators._time import (
    deadline,
    debounce,
    heartbeat,
    throttle,
    timeout_first,
    timeout_idle,
)

__all__ = [
    "Flowable",
    "Match",
    "ModelAnswer",
    "ModelCall",
    "Operator",
    "Pipeline",
    "Record",
    "Recorder",
    "Recording",
    "RemoteError",
    "StepInput",
    "Verdict",
    "accumulate_text",
    "batch",
    "block",
    "branch",
    "catch_api_error",
    "check_async",
    "concat",
    "create",
    "deadline",
    "debounce",
    "detect",
    "distinct_until_changed",
    "explain",
    "fallback",
    "feedback",
    "filter",
    "filter_async",
    "flat_map",
    "from_aiter",
    "fusion",
    "heartbeat",
    "json_lines",
    "json_objects",
    "limit_text",
    "map",
    "map_async",
    "map_text",
    "materialize_errors",
    "of",
    "of_type",
    "parallel",
    "pipe",
    "process",
    "process_all",
    "process_api_error",
    "process_input",
    "process_input_step",
    "process_llm_request",
    "process_llm_response",
    "process_output_result",
    "process_output_step",
    "process_tool_result",
    "raise_errors",
    "reasoning",
    "rechunk",
    "redact",
    "replace",
    "retry_api",
    "revealing",
    "scan",
    "smooth",
    "split_tags",
    "stateful",
    "stop_at",
    "take_while",
    "tap",
    "text",
    "throttle",
    "timeout_first",
    "timeout_idle",
    "to_aiter",
    "to_jsonl",
    "to_sse",
    "to_wire",
    "tool_calls",
]
