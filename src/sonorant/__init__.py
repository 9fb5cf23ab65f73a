"""Losses, alignment, attention and trainable systems for speech sequence models."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from sonorant.inference import load as load
    from sonorant.lengths import Padded as Padded
    from sonorant.lengths import pad_sequences as pad_sequences
    from sonorant.lengths import sequence_mask as sequence_mask

_LAZY = {
    "load": "sonorant.inference",
    "Padded": "sonorant.lengths",
    "pad_sequences": "sonorant.lengths",
    "sequence_mask": "sonorant.lengths",
}

__all__ = ["Padded", "__version__", "load", "pad_sequences", "sequence_mask"]


def __getattr__(name: str) -> Any:
    # torch takes seconds to import; the command line must answer before that
    if name not in _LAZY:
        raise AttributeError(f"module 'sonorant' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)
