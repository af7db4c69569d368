"""What it takes to test an agent: scripted models, a model server, strategies, a clock, checks.

What needs Hypothesis (the extra `testing`) is imported when it is first asked for.
"""

from typing import TYPE_CHECKING

from streampipe._lazy import exported
from streampipe.testing._clock import DeadlockError, VirtualLoop, run_virtual
from streampipe.testing._faults import Fault, faulty
from streampipe.testing._http_server import Connection, ServedRequest
from streampipe.testing._leaks import no_leaks
from streampipe.testing._marble import MarbleError, MarbleSource, check_marbles, marble
from streampipe.testing._script import (
    Call,
    Delay,
    Failure,
    Piece,
    Reasoning,
    Script,
    Turn,
    call,
    delay,
    fail,
    reasoning,
    turn,
)
from streampipe.testing._scripted import ScriptedModel
from streampipe.testing._server import Answer, ModelServer

if TYPE_CHECKING:
    from streampipe.testing._check_model import MODEL_LAWS, check_model
    from streampipe.testing._check_operator import OPERATOR_LAWS, check_operator
    from streampipe.testing._check_processor import PROCESSOR_LAWS, check_processor
    from streampipe.testing._examine import LawError
    from streampipe.testing._strategies import (
        agent_scripts,
        chunk_streams,
        chunkings,
        message_lists,
        texts,
    )
    from streampipe.testing._trial import Promises

__all__ = [
    "MODEL_LAWS",
    "OPERATOR_LAWS",
    "PROCESSOR_LAWS",
    "Answer",
    "Call",
    "Connection",
    "DeadlockError",
    "Delay",
    "Failure",
    "Fault",
    "LawError",
    "MarbleError",
    "MarbleSource",
    "ModelServer",
    "Piece",
    "Promises",
    "Reasoning",
    "Script",
    "ScriptedModel",
    "ServedRequest",
    "Turn",
    "VirtualLoop",
    "agent_scripts",
    "call",
    "check_marbles",
    "check_model",
    "check_operator",
    "check_processor",
    "chunk_streams",
    "chunkings",
    "delay",
    "fail",
    "faulty",
    "marble",
    "message_lists",
    "no_leaks",
    "reasoning",
    "run_virtual",
    "texts",
    "turn",
]

__getattr__ = exported(
    __name__,
    {
        "LawError": "streampipe.testing._examine",
        "MODEL_LAWS": "streampipe.testing._check_model",
        "OPERATOR_LAWS": "streampipe.testing._check_operator",
        "PROCESSOR_LAWS": "streampipe.testing._check_processor",
        "Promises": "streampipe.testing._trial",
        "agent_scripts": "streampipe.testing._strategies",
        "check_model": "streampipe.testing._check_model",
        "check_operator": "streampipe.testing._check_operator",
        "check_processor": "streampipe.testing._check_processor",
        "chunk_streams": "streampipe.testing._strategies",
        "chunkings": "streampipe.testing._strategies",
        "message_lists": "streampipe.testing._strategies",
        "texts": "streampipe.testing._strategies",
    },
)
