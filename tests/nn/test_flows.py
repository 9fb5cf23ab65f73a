"""Invertible layers: their inverses, what they begin as, what they refuse."""

import pytest
import torch
from torch import Tensor, nn

from sonorant.nn import AffineCoupling, InvertibleLinear, WaveNet, Whitening


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def correlated(frames: int, channels: int) -> Tensor:
    return normal(frames, channels) @ normal(channels, channels, seed=1) + 3


def covariance(x: Tensor) -> Tensor:
    return x.T.cov(correction=0)


@pytest.mark.parametrize("channels", [1, 2, 7])
def test_a_linear_map_begins_as_a_rotation_and_goes_back(channels: int) -> None:
    torch.manual_seed(0)
    layer, x = InvertibleLinear(channels).double(), normal(4, 6, channels)
    y, log_det = layer(x)
    torch.testing.assert_close(y.norm(dim=2), x.norm(dim=2), rtol=1e-6, atol=1e-6)
    assert abs(float(log_det.detach())) < 1e-5
    with torch.no_grad():
        layer.triangles += 0.3 * normal(channels, channels, seed=2)
        layer.log_diagonal += 0.3 * normal(channels, seed=3)
    y, log_det = layer(x)
    assert (y.norm(dim=2) - x.norm(dim=2)).abs().max() > 0.01 < abs(float(log_det.detach()))
    torch.testing.assert_close(layer.inverse(y), x)


def test_rotations_differ_and_permute() -> None:
    torch.manual_seed(0)
    first, second = InvertibleLinear(6), InvertibleLinear(6)
    assert not torch.equal(first.triangles, second.triangles)
    assert sorted(first.permutation.tolist()) == list(range(6)) != first.permutation.tolist()


def test_whitened_data_has_no_correlation() -> None:
    x = correlated(500, 6)
    layer = Whitening(6).double()
    layer.fit(x.mean(0), covariance(x), ridge=0.0)
    y, log_det = layer(x)
    torch.testing.assert_close(covariance(y), torch.eye(6, dtype=torch.float64))
    torch.testing.assert_close(y.mean(0), torch.zeros(6, dtype=torch.float64))
    torch.testing.assert_close(layer.weight, layer.weight.triu())
    torch.testing.assert_close(log_det, -0.5 * covariance(x).logdet())
    torch.testing.assert_close(layer.inverse(y), x)


def test_whitening_is_the_identity_before_it_is_fitted() -> None:
    x = normal(3, 4)
    y, log_det = Whitening(4).double()(x)
    assert torch.equal(x, y)
    assert log_det == 0


def test_constant_and_redundant_channels_are_not_blown_up() -> None:
    x = correlated(500, 6)
    x[:, 2], x[:, 4] = -11.5, x[:, 0] + x[:, 1]
    layer = Whitening(6).double()
    layer.fit(x.mean(0), covariance(x))
    y, log_det = layer(x)
    variances = covariance(y).diagonal()
    assert variances[2] < 1e-9
    assert variances.max() < 1.001
    assert layer.weight.abs().max() < 200
    assert log_det.isfinite()
    torch.testing.assert_close(layer.inverse(y), x)
    # what is said of relative size holds whatever the unit
    scaled = Whitening(6).double()
    scaled.fit(100 * x.mean(0), 1e4 * covariance(x))
    torch.testing.assert_close(scaled(100 * x)[0], y)


@pytest.mark.parametrize(
    ("mean", "matrix", "message"),
    [
        (torch.zeros(3), torch.eye(2), r"shapes \(2,\) and \(2, 2\); got \(3,\) and \(2, 2\)"),
        (torch.tensor([0.0, torch.nan]), torch.eye(2), "must be finite"),
        (torch.zeros(2), torch.full((2, 2), torch.inf), "must be finite"),
        (torch.zeros(2), torch.zeros(2, 2), "covariance has no variance"),
        (torch.zeros(2), torch.tensor([[1.0, 2.0], [2.0, 1.0]]), "not positive definite"),
    ],
)
def test_statistics_that_are_none(mean: Tensor, matrix: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Whitening(2).fit(mean, matrix)


@pytest.mark.parametrize(
    ("channels", "num_kept", "kept"), [(1, None, 0), (2, None, 1), (7, None, 3), (7, 0, 0), (7, 6, 6)]
)
def test_a_coupling_begins_as_the_identity_and_goes_back(channels: int, num_kept: int | None, kept: int) -> None:
    torch.manual_seed(0)
    layer = AffineCoupling(channels, num_kept=num_kept, context_dim=2, hidden_channels=4, num_layers=2).double()
    x, context, lengths = normal(2, 5, channels), normal(2, 5, 2, seed=1), torch.tensor([5, 3])
    x[1, 3:] = 0
    y, log_scale = layer(x, context, lengths)
    torch.testing.assert_close(y, x, rtol=2e-6, atol=0)
    assert log_scale.shape == (2, 5, channels - kept)
    nn.init.normal_(layer.wavenet.end.weight)
    y, log_scale = layer(x, context, lengths)
    assert log_scale.abs().max() > 0.1
    assert torch.equal(y[..., :kept], x[..., :kept])
    assert not y[1, 3:].any()
    torch.testing.assert_close(layer.inverse(y, context, lengths), x)


def test_without_kept_channels_the_context_alone_decides() -> None:
    torch.manual_seed(0)
    layer = AffineCoupling(3, num_kept=0, context_dim=2, hidden_channels=4, num_layers=2).double()
    nn.init.normal_(layer.wavenet.end.weight)
    x, context, lengths = normal(1, 5, 3), normal(1, 5, 2, seed=1), torch.tensor([5])
    y, log_scale = layer(x, context, lengths)
    other, its_log_scale = layer(2 * x, context, lengths)
    assert torch.equal(log_scale, its_log_scale)
    torch.testing.assert_close(other - y, log_scale.exp() * x)
    assert not torch.allclose(layer(x, context + 1, lengths)[1], log_scale)


def test_a_scale_stays_above_zero() -> None:
    layer = AffineCoupling(4, context_dim=2, hidden_channels=4, num_layers=1)
    nn.init.constant_(layer.wavenet.end.bias, -50.0)
    x, context, lengths = torch.ones(1, 3, 4), torch.zeros(1, 3, 2), torch.tensor([3])
    y, log_scale = layer(x, context, lengths)
    torch.testing.assert_close(log_scale.exp(), torch.full((1, 3, 2), 1e-6), rtol=0.1, atol=0)
    assert layer.inverse(y, context, lengths).isfinite().all()


@pytest.mark.parametrize("layer", [InvertibleLinear(4), Whitening(4)], ids=["InvertibleLinear", "Whitening"])
def test_half_precision_is_computed_in_float32(layer: nn.Module) -> None:
    if isinstance(layer, Whitening):
        x = correlated(100, 4)
        layer.fit(x.mean(0), covariance(x))
    x = normal(6, 4).to(torch.bfloat16)
    layer = layer.to(torch.bfloat16)
    y, log_det = layer(x)
    assert y.dtype == log_det.dtype == torch.float32
    torch.testing.assert_close(layer.inverse(y), x.float(), rtol=1e-4, atol=1e-4)


def test_the_context_reaches_every_layer() -> None:
    torch.manual_seed(0)
    model = WaveNet(3, 2, context_dim=4, hidden_channels=5, num_layers=3).double()
    nn.init.normal_(model.end.weight)
    model(normal(1, 6, 3), normal(1, 6, 4, seed=1), torch.tensor([6])).square().sum().backward()
    assert all(layer.weight.grad.abs().sum() > 0 for layer in model.contexts)


def test_dilations_double_and_a_network_without_input_hears_the_context() -> None:
    model = WaveNet(0, 2, context_dim=4, hidden_channels=5, num_layers=3, kernel_size=5)
    nn.init.normal_(model.end.weight)
    context = torch.zeros(1, 31, 4)
    quiet = model(torch.zeros(1, 31, 0), context, torch.tensor([31]))
    context[0, 15] = 1
    heard = (model(torch.zeros(1, 31, 0), context, torch.tensor([31])) != quiet).any(2)[0]
    # 2 * 1, 2 * 2 and 2 * 4 frames on either side
    assert heard.nonzero().flatten().tolist() == list(range(1, 30))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: InvertibleLinear(0), "channels must be at least 1; got 0"),
        (lambda: Whitening(0), "channels must be at least 1; got 0"),
        (lambda: AffineCoupling(0, context_dim=1, hidden_channels=1, num_layers=1), "channels must be at least 1"),
        (
            lambda: AffineCoupling(3, num_kept=3, context_dim=1, hidden_channels=1, num_layers=1),
            r"num_kept must lie in \[0, 3\); got 3",
        ),
        (lambda: WaveNet(1, 1, context_dim=0, hidden_channels=1, num_layers=1), "context_dim must be at least 1"),
        (lambda: WaveNet(1, 1, context_dim=1, hidden_channels=1, num_layers=0), "num_layers must be at least 1"),
        (lambda: WaveNet(1, 1, context_dim=1, hidden_channels=1, num_layers=1, kernel_size=2), "odd number; got 2"),
        (lambda: InvertibleLinear(4)(torch.ones(2, 3)), r"x must have 4 channels; got shape \(2, 3\)"),
        (lambda: Whitening(4).inverse(torch.ones(2, 3)), r"x must have 4 channels; got shape \(2, 3\)"),
    ],
)
def test_impossible_arguments(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]
