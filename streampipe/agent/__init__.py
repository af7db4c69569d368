"""The agent and its run."""

from streampipe.agent._agent import Agent
from streampipe.agent._options import AgentOptions, CallOptions
from streampipe.agent._stream import Run

__all__ = ["Agent", "AgentOptions", "CallOptions", "Run"]
