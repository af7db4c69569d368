"""What all protocols go over: a call and its retries, events of a stream, keys and failures."""

__all__: list[str] = []
