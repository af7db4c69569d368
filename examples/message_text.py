"""Read the text of a message, whichever way it was stored.

`message.text` joins the text parts of a `Message`. Stored JSON may be older than its parts: a
legacy message has only a flat `content.content`, which is read when there are no parts.

Prints:

    parts:  'Is my parcel in Porto?'
    legacy: 'Where is my order?'
"""

from __future__ import annotations

import asyncio
from typing import Any

from streampipe.messages import message_from

STORED: list[dict[str, Any]] = [
    {
        "id": "m1",
        "role": "user",
        "content": {
            "format": 2,
            "parts": [
                {"type": "text", "text": "Is my parcel "},
                {"type": "file", "data": "aGk=", "mimeType": "image/png"},
                {"type": "text", "text": "in Porto?"},
            ],
        },
    },
    {"id": "m2", "role": "user", "content": {"format": 2, "content": "Where is my order?"}},
]


async def main() -> None:
    """Read both forms."""
    whole, legacy = (message_from(stored) for stored in STORED)
    print(f"parts:  {whole.text!r}")
    print(f"legacy: {legacy.text!r}")


if __name__ == "__main__":
    asyncio.run(main())
