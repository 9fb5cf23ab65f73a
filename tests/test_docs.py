"""The code of the documentation runs."""

import pytest
import torch

from tests.documentation import Block, all_blocks, blocks_of


@pytest.mark.parametrize("block", all_blocks(), ids=lambda block: f"{block.page}:{block.line}")
def test_code_of_the_documentation(block: Block) -> None:
    if block.runnable:
        torch.manual_seed(0)
        block.run()
    else:
        block.compiled()


def test_blocks_are_found_and_sketches_are_not_run() -> None:
    text = 'a\n```python\nx = 1\n```\n```sh\nls\n```\n```python title="sketch"\ny = unknown\n```\n'
    first, second = blocks_of(text, "page.md")
    assert (first.line, first.runnable, first.run()["x"]) == (3, True, 1)
    assert (second.line, second.runnable) == (9, False)
    with pytest.raises(NameError):
        second.run()
