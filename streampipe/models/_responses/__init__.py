"""OpenAI's Responses: what is sent, what comes back, and the schemas that it takes."""

__all__: list[str] = []
