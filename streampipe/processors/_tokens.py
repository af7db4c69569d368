"""How many tokens a text has: an estimate that costs nothing, or a tokenizer's own count."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import cache

from streampipe.errors import ConfigurationError
from streampipe.messages import (
    FilePart,
    Part,
    PromptMessage,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from streampipe.messages._json import shown_text
from streampipe.operators._functions import UnfitError, check_function

__all__ = ["Counter", "checked_count_of", "estimated_tokens", "message_tokens"]

Counter = Callable[[str], int]
"""How many tokens a text has."""

FRAME = 4  # tokens that providers spend on the role and the ends of a message
FILE = 1_000  # a picture of a megapixel, or a page or two; nobody can tell it from its bytes

# Tokenizers keep common words whole, cut digits in threes, and merge punctuation in pairs at most;
# of scripts without spaces a character is about a token.
_PIECES = re.compile(
    r"[A-Za-z\u00c0-\u024f]{1,8}"
    r"|\d{1,3}"
    r"|[^\W\d_]"
    r"|(?:[^\w\s]|_){1,2}"
    r"|\n+"
    r"| {2,}"
)
_MODELS = {
    re.compile(r"(?:chatgpt-4o|gpt-(?:4o|4\.[15]|5|oss)|o[1-9])(?![0-9])"): "o200k_base",
    re.compile(r"(?:gpt-(?:4|3\.5)|text-embedding-3)(?![0-9])"): "cl100k_base",
}
INSTALL = "pip install 'streampipe-rx[tokens]'"


def estimated_tokens(text: str) -> int:
    """How many tokens a text has, roughly: the pieces of about eight letters that it falls into.

    On 13 recorded answers of Anthropic, Groq, OpenAI and xAI, against the usage that came with
    them, it is 10 % off in the middle case, from 19 % below to 24 % above, and 2 % below on
    average. Four characters a token are 17 % off there, from 43 % below to 44 % above; OpenAI's own
    newest tokenizer is 10 % off, since the others have their own.

    >>> estimated_tokens("How many tokens are these?"), estimated_tokens("")
    (6, 0)
    """
    return len(_PIECES.findall(text))


def checked_count_of(owner: str, count: Counter | str | None) -> Counter:
    """What counts tokens for a processor.

    Args:
        owner: the processor's class, for errors.
        count: a function; an encoding or a model of OpenAI's by name; None for the estimate.

    Returns:
        A function from text to a whole number of 0 or more; it raises `UnfitError` when a function
        of the user's gives something else.

    Raises:
        ConfigurationError: it is none of these; the name is not known; or it is, and the package
            with the vocabularies is not installed.
    """
    if count is None:
        return estimated_tokens
    if isinstance(count, str):
        return _tokenizer(owner, count)
    check_function(owner, "count", count)

    def counted(text: str) -> int:
        tokens = count(text)
        if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
            told = "a number below 0" if isinstance(tokens, int) else type(tokens).__name__
            raise UnfitError(f"count returned {told}; it has to return a whole number from 0 on")
        return tokens

    return counted


def _tokenizer(owner: str, name: str) -> Counter:
    encodings = _MODELS.values()
    known = (made for model, made in _MODELS.items() if model.match(name.removeprefix("openai/")))
    encoding = name if name in encodings else next(known, None)
    if encoding is None:
        msg = (
            f"{owner}: count={name!r:.80} is no encoding and no model of OpenAI's; give one of "
            f"{', '.join(encodings)}, a model such as 'gpt-4o', a function or None"
        )
        raise ConfigurationError(msg)
    try:
        return _encoding(encoding)
    except ImportError as error:
        msg = f"{owner}: count={name!r} needs a tokenizer: {INSTALL}"
        raise ConfigurationError(msg) from error


@cache
def _encoding(name: str) -> Counter:
    with warnings.catch_warnings():  # it reads its vocabularies by a name that is going away
        warnings.simplefilter("ignore", DeprecationWarning)
        import bpe_openai  # type: ignore[import-untyped]  # no types  # noqa: PLC0415 - an extra

        encode = bpe_openai.get_encoding(name).encode_ordinary
    return lambda text: len(encode(text))


def message_tokens(message: PromptMessage, count: Counter) -> int:
    """How many tokens a message of a prompt has, four for its frame included.

    A file counts as a thousand, whatever it is.
    """
    return FRAME + sum(_part_tokens(part, count) for part in message.content)


def _part_tokens(part: Part, count: Counter) -> int:
    match part:
        case TextPart() | ReasoningPart():
            return count(part.text)
        case ToolCallPart():
            return count(part.tool_name) + count(shown_text(part.args))
        case ToolResultPart():
            return count(shown_text(part.result))
        case FilePart():
            return FILE
        case _:
            return count(shown_text(part.extra)) if part.extra else 0
