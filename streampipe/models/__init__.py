"""Models: what an agent's answers come from.

The classes are imported when first asked for, since they need an HTTP client.
"""

from typing import TYPE_CHECKING

from streampipe._lazy import exported
from streampipe.models._catalog import register_provider, resolve_model
from streampipe.models._http.transport import Timeout, Transport, TransportResponse

if TYPE_CHECKING:
    from streampipe.models.anthropic import AnthropicModel
    from streampipe.models.fallback import FallbackModel
    from streampipe.models.google import GoogleModel
    from streampipe.models.openai_chat import OpenAIChatModel
    from streampipe.models.openai_responses import OpenAIResponsesModel
else:  # type checkers would take a `__getattr__` for a licence to any name
    __getattr__ = exported(
        __name__,
        {
            "AnthropicModel": "streampipe.models.anthropic",
            "FallbackModel": "streampipe.models.fallback",
            "GoogleModel": "streampipe.models.google",
            "OpenAIChatModel": "streampipe.models.openai_chat",
            "OpenAIResponsesModel": "streampipe.models.openai_responses",
        },
    )

__all__ = [
    "AnthropicModel",
    "FallbackModel",
    "GoogleModel",
    "OpenAIChatModel",
    "OpenAIResponsesModel",
    "Timeout",
    "Transport",
    "TransportResponse",
    "register_provider",
    "resolve_model",
]
