"""What all protocols have in common: prompts on their way out, events on their way in."""

__all__: list[str] = []
