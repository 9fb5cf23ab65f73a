"""Run by `make core` in an environment that holds torch, numpy and jaxtyping alone (no test runner)."""

import importlib
import importlib.util
import subprocess
import sys

import torch

CORE = ("sonorant", "sonorant.lengths", "sonorant.functional", "sonorant.losses", "sonorant.nn", "sonorant.models")
EXTRAS = ("numba", "lightning", "soundfile", "kaldifst", "matplotlib", "safetensors")


def main() -> None:
    present = [name for name in EXTRAS if importlib.util.find_spec(name)]
    assert not present, f"not a bare environment: {present} are installed"
    for name in CORE:
        importlib.import_module(name)

    from sonorant.losses import CtcLoss
    from sonorant.nn import Tdnn

    model = Tdnn(23, 4)
    logits, lengths = model(torch.randn(2, 60, 23), torch.tensor([60, 40]))
    loss = CtcLoss()(logits.log_softmax(-1), torch.tensor([[1, 2], [3, 0]]), lengths, torch.tensor([2, 1]))
    loss.backward()
    assert torch.isfinite(loss)

    sonorant = [sys.executable, "-m", "sonorant.cli", "train", "yesno", "--output", "nowhere"]
    done = subprocess.run(sonorant, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done
    assert "pip install 'sonorant[train]'" in done.stderr, done.stderr
    print("the bare core works")


if __name__ == "__main__":
    main()
