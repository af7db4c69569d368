"""Ready-made processors: guards, limits, flow and recovery, each by itself.

The classes are imported when first asked for.
"""

from typing import TYPE_CHECKING

from streampipe._lazy import exported

if TYPE_CHECKING:
    from streampipe.processors._cache_stores import (
        CacheStore,
        MemoryStore,
        RedisStore,
        SQLiteStore,
    )
    from streampipe.processors._check_guard import CheckOptions, GuardOptions, WindowOptions
    from streampipe.processors._known import KnownProcessor
    from streampipe.processors._registry import ProcessorLists, known_processors, processors_from
    from streampipe.processors.batch_parts import BatchParts
    from streampipe.processors.classifier_processor import ClassifierOptions, ClassifierProcessor
    from streampipe.processors.context_length_recovery import ContextLengthRecovery
    from streampipe.processors.cost_guard import CostGuard
    from streampipe.processors.entity_detector import Entity, EntityDetector
    from streampipe.processors.guard import Guard
    from streampipe.processors.language_detector import LanguageDetector
    from streampipe.processors.model_router import ModelRouter
    from streampipe.processors.moderation_processor import (
        MODERATION_CATEGORIES,
        ModerationProcessor,
    )
    from streampipe.processors.pii_detector import PIIDetector
    from streampipe.processors.prefill_error_handler import PrefillErrorHandler
    from streampipe.processors.prepare_step import PrepareStep
    from streampipe.processors.prompt_injection_detector import (
        INJECTION_CATEGORIES,
        PromptInjectionDetector,
    )
    from streampipe.processors.provider_history_compat import (
        HISTORY_RULES,
        HistoryRule,
        ProviderHistoryCompat,
    )
    from streampipe.processors.regex_filter import RegexFilter
    from streampipe.processors.response_cache import ResponseCache
    from streampipe.processors.side_by_side import SideBySide
    from streampipe.processors.smooth_stream import SmoothStream
    from streampipe.processors.stream_error_retry import StreamErrorRetry
    from streampipe.processors.structured_output import StructuredOutput
    from streampipe.processors.system_prompt_scrubber import SystemPromptScrubber
    from streampipe.processors.token_limiter import TokenLimiter
    from streampipe.processors.tool_call_filter import ToolCallFilter
    from streampipe.processors.tool_call_guard import ToolCallGuard
    from streampipe.processors.tool_result_limiter import ToolResultLimiter
    from streampipe.processors.tool_search import ToolSearch
    from streampipe.processors.unicode_normalizer import UnicodeNormalizer
else:  # type checkers would take a `__getattr__` for a licence to any name
    __getattr__ = exported(
        __name__,
        {
            "BatchParts": "streampipe.processors.batch_parts",
            "CacheStore": "streampipe.processors._cache_stores",
            "CheckOptions": "streampipe.processors._check_guard",
            "ClassifierOptions": "streampipe.processors.classifier_processor",
            "ClassifierProcessor": "streampipe.processors.classifier_processor",
            "ContextLengthRecovery": "streampipe.processors.context_length_recovery",
            "CostGuard": "streampipe.processors.cost_guard",
            "Entity": "streampipe.processors.entity_detector",
            "EntityDetector": "streampipe.processors.entity_detector",
            "Guard": "streampipe.processors.guard",
            "GuardOptions": "streampipe.processors._check_guard",
            "HISTORY_RULES": "streampipe.processors.provider_history_compat",
            "HistoryRule": "streampipe.processors.provider_history_compat",
            "KnownProcessor": "streampipe.processors._known",
            "INJECTION_CATEGORIES": "streampipe.processors.prompt_injection_detector",
            "LanguageDetector": "streampipe.processors.language_detector",
            "MODERATION_CATEGORIES": "streampipe.processors.moderation_processor",
            "MemoryStore": "streampipe.processors._cache_stores",
            "ModelRouter": "streampipe.processors.model_router",
            "ModerationProcessor": "streampipe.processors.moderation_processor",
            "PIIDetector": "streampipe.processors.pii_detector",
            "PrefillErrorHandler": "streampipe.processors.prefill_error_handler",
            "PrepareStep": "streampipe.processors.prepare_step",
            "ProcessorLists": "streampipe.processors._registry",
            "PromptInjectionDetector": "streampipe.processors.prompt_injection_detector",
            "ProviderHistoryCompat": "streampipe.processors.provider_history_compat",
            "RedisStore": "streampipe.processors._cache_stores",
            "RegexFilter": "streampipe.processors.regex_filter",
            "ResponseCache": "streampipe.processors.response_cache",
            "SQLiteStore": "streampipe.processors._cache_stores",
            "SideBySide": "streampipe.processors.side_by_side",
            "SmoothStream": "streampipe.processors.smooth_stream",
            "StreamErrorRetry": "streampipe.processors.stream_error_retry",
            "StructuredOutput": "streampipe.processors.structured_output",
            "SystemPromptScrubber": "streampipe.processors.system_prompt_scrubber",
            "TokenLimiter": "streampipe.processors.token_limiter",
            "ToolCallFilter": "streampipe.processors.tool_call_filter",
            "ToolCallGuard": "streampipe.processors.tool_call_guard",
            "ToolResultLimiter": "streampipe.processors.tool_result_limiter",
            "ToolSearch": "streampipe.processors.tool_search",
            "UnicodeNormalizer": "streampipe.processors.unicode_normalizer",
            "WindowOptions": "streampipe.processors._check_guard",
            "known_processors": "streampipe.processors._registry",
            "processors_from": "streampipe.processors._registry",
        },
    )

__all__ = [
    "HISTORY_RULES",
    "INJECTION_CATEGORIES",
    "MODERATION_CATEGORIES",
    "BatchParts",
    "CacheStore",
    "CheckOptions",
    "ClassifierOptions",
    "ClassifierProcessor",
    "ContextLengthRecovery",
    "CostGuard",
    "Entity",
    "EntityDetector",
    "Guard",
    "GuardOptions",
    "HistoryRule",
    "KnownProcessor",
    "LanguageDetector",
    "MemoryStore",
    "ModelRouter",
    "ModerationProcessor",
    "PIIDetector",
    "PrefillErrorHandler",
    "PrepareStep",
    "ProcessorLists",
    "PromptInjectionDetector",
    "ProviderHistoryCompat",
    "RedisStore",
    "RegexFilter",
    "ResponseCache",
    "SQLiteStore",
    "SideBySide",
    "SmoothStream",
    "StreamErrorRetry",
    "StructuredOutput",
    "SystemPromptScrubber",
    "TokenLimiter",
    "ToolCallFilter",
    "ToolCallGuard",
    "ToolResultLimiter",
    "ToolSearch",
    "UnicodeNormalizer",
    "WindowOptions",
    "known_processors",
    "processors_from",
]
