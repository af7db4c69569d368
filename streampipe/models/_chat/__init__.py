"""Chat completions, as OpenAI and many others speak them: what is sent, and what comes back."""

__all__: list[str] = []
