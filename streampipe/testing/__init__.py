"""What it takes to test an agent: scripted models, a model server, checks."""

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
from streampipe.testing._server import Answer, Connection, ModelServer, ServedRequest

__all__ = [
    "Answer",
    "Call",
    "Connection",
    "Delay",
    "Failure",
    "ModelServer",
    "Piece",
    "Reasoning",
    "Script",
    "ScriptedModel",
    "ServedRequest",
    "Turn",
    "call",
    "delay",
    "fail",
    "reasoning",
    "turn",
]
