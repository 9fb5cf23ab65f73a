"""What the TDNN promises beyond the contracts."""

import pytest
import torch

from sonorant.nn import Tdnn


def test_has_the_original_s_size() -> None:
    assert sum(parameter.numel() for parameter in Tdnn(23, 4).parameters()) == 12676


def test_shrink_and_output_lengths_follow_from_the_layers() -> None:
    model = Tdnn(23, 4)
    assert model.shrink == 26
    assert model.output_lengths(torch.tensor([27, 26, 3, 100])).tolist() == [1, 0, 0, 74]


def test_short_utterances_are_all_named() -> None:
    with pytest.raises(ValueError, match=r"x_lengths\[1\] is 26, x_lengths\[2\] is 5; the network needs at least 27"):
        Tdnn(5, 4)(torch.randn(3, 40, 5), torch.tensor([40, 26, 5]))


def test_wrong_features_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(batch, time, 5\); got \(3, 40, 6\)"):
        Tdnn(5, 4)(torch.randn(3, 40, 6), torch.tensor([40, 30, 30]))


def test_sizes_must_be_positive() -> None:
    with pytest.raises(ValueError, match="hidden_channels must be at least 1; got 0"):
        Tdnn(5, 4, hidden_channels=0)


def test_exports_with_dynamic_batch_and_time() -> None:
    model = Tdnn(5, 4).eval()
    batch, time = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("time", min=28, max=5000)
    example = (torch.randn(2, 60, 5), torch.tensor([60, 40]))
    program = torch.export.export(model, example, dynamic_shapes=({0: batch, 1: time}, {0: batch})).module()
    for size, frames in ((1, 28), (5, 700)):
        x, lengths = torch.randn(size, frames, 5), torch.full((size,), frames)
        torch.testing.assert_close(program(x, lengths)[0], model(x, lengths)[0])


def test_runs_in_onnxruntime(tmp_path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    model, path = Tdnn(5, 4).eval(), str(tmp_path / "tdnn.onnx")
    batch, time = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("time", min=28, max=5000)
    torch.onnx.export(
        model,
        (torch.randn(2, 60, 5), torch.tensor([60, 40])),
        path,
        dynamo=True,
        input_names=["x", "x_lengths"],
        dynamic_shapes=({0: batch, 1: time}, {0: batch}),
        verbose=False,
    )
    session = onnxruntime.InferenceSession(path)
    for size, frames in ((1, 50), (2, 700), (5, 30)):
        x, lengths = torch.randn(size, frames, 5), torch.randint(27, frames + 1, (size,))
        logits, output_lengths = session.run(None, {"x": x.numpy(), "x_lengths": lengths.numpy()})
        expected = model(x, lengths)
        torch.testing.assert_close(torch.from_numpy(logits), expected.values, atol=1e-4, rtol=0)
        assert output_lengths.tolist() == expected.lengths.tolist()
