"""Small distributions that bring processors, as an installer would have put them on the path."""

from __future__ import annotations

from pathlib import Path

GROUP = "streampipe.processors"

SHOUTS = '''
from dataclasses import replace

from streampipe import TextDelta


class Shout:
    """Says it in capitals, with so many marks behind."""

    id = "shout"

    def __init__(self, marks, *, mark="!"):
        if marks is not None and not marks.isdigit():
            raise ValueError(f"marks is a number, not {marks}")
        self.end = mark * int(marks or 0)

    def process_output_stream(self, args):
        if isinstance(args.part, TextDelta):
            return replace(args.part, text=args.part.text.upper() + self.end)
        return args.part
'''


def install(
    folder: Path,
    name: str,
    points: dict[str, str],
    *,
    module: str = SHOUTS,
    version: str = "1.2",
) -> None:
    """Put a distribution into a folder that is on the path.

    Args:
        folder: of the kind that `site-packages` is.
        name: of the distribution; its module has the same.
        points: object references by entry point.
        module: the code of its module.
        version: of the distribution.
    """
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (folder / f"{name}.py").write_text(module, encoding="utf-8")
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    lines = [f"[{GROUP}]", *(f"{point} = {value}" for point, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
