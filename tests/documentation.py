"""The Python blocks of the Markdown pages.

A block runs on its own, with nothing before it. One that cannot (it needs a trained model, say) is fenced as
```` ```python title="sketch" ````, and is only compiled.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

ROOT = Path(__file__).parent.parent
SKETCH = 'title="sketch"'
_FENCE = re.compile(r"^```python([^\n]*)\n(.*?)^```\s*$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of a page, with the line that it starts on."""

    page: str
    line: int
    code: str
    runnable: bool

    def compiled(self) -> CodeType:
        """Compiled so that tracebacks name the page's lines."""
        return compile("\n" * (self.line - 1) + self.code, self.page, "exec")

    def run(self) -> dict[str, Any]:
        """What the block defines."""
        namespace: dict[str, Any] = {"__name__": "block"}
        exec(self.compiled(), namespace)
        return namespace


def blocks_of(text: str, page: str) -> list[Block]:
    """All Python blocks of a page."""
    return [
        Block(page, text[: match.start(2)].count("\n") + 1, match.group(2), SKETCH not in match.group(1))
        for match in _FENCE.finditer(text)
    ]


def all_blocks() -> list[Block]:
    """The blocks of the README and of every page in docs/."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        block for page in pages for block in blocks_of(page.read_text(encoding="utf-8"), str(page.relative_to(ROOT)))
    ]
