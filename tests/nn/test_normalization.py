"""Batch normalisation over several processes."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from sonorant.nn import MaskedBatchNorm1d

LENGTHS = torch.tensor([9, 4, 7])


def batch() -> Tensor:
    return torch.randn(3, 2, 9, generator=torch.Generator().manual_seed(0)).double()


def train(norm: MaskedBatchNorm1d, x: Tensor, lengths: Tensor, rows: slice) -> dict[str, Tensor]:
    """The output and all gradients of a loss that looks at every value."""
    x = x[rows].requires_grad_()
    y = norm(x, lengths[rows])
    (y * torch.linspace(0, 1, 54).double().view(3, 2, 9)[rows]).sum().backward()
    gradients = {name: parameter.grad for name, parameter in norm.named_parameters()}
    return {"y": y.detach(), "x": x.grad, **gradients, **dict(norm.named_buffers())}


def worker(rank: int, folder: Path, parts: list[slice]) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=len(parts))
    norm = MaskedBatchNorm1d(2, synchronized=True).double()
    x, lengths = batch(), LENGTHS
    torch.save(train(norm, x, lengths, parts[rank]), folder / f"{rank}.pt")
    alone = norm.eval()(x[:1], lengths[:1])  # no other process is asked
    assert alone.isfinite().all()
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize("parts", [[slice(0, 1), slice(1, 3)], [slice(0, 3), slice(3, 3)]], ids=["1 and 2", "3 and 0"])
def test_the_batches_of_all_processes_are_one(tmp_path: Path, parts: list[slice]) -> None:
    torch.multiprocessing.spawn(worker, (tmp_path, parts), nprocs=2)
    whole = train(MaskedBatchNorm1d(2).double(), batch(), LENGTHS, slice(None))
    ranks = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    for name in ("y", "x"):
        torch.testing.assert_close(torch.cat([rank[name] for rank in ranks]), whole[name])
    for name in ("weight", "bias"):  # which every process has for itself
        torch.testing.assert_close(ranks[0][name] + ranks[1][name], whole[name])
    for name in ("running_mean", "running_var"):
        for rank in ranks:
            torch.testing.assert_close(rank[name], whole[name])


def test_synchronized_changes_nothing_in_a_single_process() -> None:
    one, other = MaskedBatchNorm1d(2, synchronized=True).double(), MaskedBatchNorm1d(2).double()
    results = train(one, batch(), LENGTHS, slice(None)), train(other, batch(), LENGTHS, slice(None))
    for name, value in results[0].items():
        assert torch.equal(value, results[1][name])
