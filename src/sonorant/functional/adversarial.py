"""Least-squares adversarial losses and feature matching, over lists of discriminators."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from sonorant.functional import kernels
from sonorant.functional.reduction import check_reduction, compute_dtype
from sonorant.lengths import ratio_lengths, sequence_mask

__all__ = ["feature_matching_loss", "lsgan_discriminator_loss", "lsgan_generator_loss"]

ScoreReduction = Literal["none", "sum"]

_KERNEL_DTYPES = (torch.float32, torch.float64)


def lsgan_discriminator_loss(
    real_scores: Sequence[Float[Tensor, "batch _"]],
    fake_scores: Sequence[Float[Tensor, "batch _"]],
    *,
    length_ratios: Float[Tensor, " batch"] | None = None,
    reduction: ScoreReduction = "sum",
) -> Tensor:
    r"""Least-squares loss of discriminators: real towards 1, fake towards 0.

    .. math:: \sum_i \mathrm{E}[(1 - D_i(x))^2] + \mathrm{E}[D_i(G)^2]

    The expectations run over valid steps only. The scores of multi-scale and multi-period discriminators go into one
    list (the original forgets the multi-scale ones).

    Args:
        real_scores: for each discriminator ``(batch, time)``; another time for each.
        fake_scores: the same for generated waveforms; detach these, the generator learns from
            :func:`lsgan_generator_loss`.
        length_ratios: ``(batch,)`` in (0, 1]: an utterance is valid for ``ceil(ratio * time)`` steps; None: all are.
        reduction: ``"sum"`` over the discriminators, or ``"none"`` for one value each.

    Returns:
        A scalar or ``(discriminators,)``, in float32 for half precision, else in the dtype of the scores.

    Raises:
        ValueError: different numbers of discriminators, no discriminator, shapes that do not fit, ratios outside
            (0, 1].

    References:
        Mao et al. 2017, "Least squares generative adversarial networks", arXiv 1611.04076; Kong, Kim and Bae 2020,
        "HiFi-GAN", arXiv 2010.05646.

    Example:
        >>> import torch
        >>> from sonorant.functional import lsgan_discriminator_loss
        >>> real, fake = [torch.tensor([[1.0, 0.5]])], [torch.tensor([[0.5, 0.5]])]
        >>> lsgan_discriminator_loss(real, fake)
        tensor(0.3750)
    """
    check_reduction(reduction, ("none", "sum"))
    _check_same_number(real_scores, fake_scores, "real_scores", "fake_scores")
    _check_scores(real_scores, length_ratios, "real_scores")
    _check_scores(fake_scores, length_ratios, "fake_scores")
    differences = torch.cat([_flattened(real_scores) - 1, _flattened(fake_scores)])
    values = _mean_squares(differences, [*real_scores, *fake_scores], length_ratios)
    return values.view(2, -1).sum(0) if reduction == "none" else values.sum()


def lsgan_generator_loss(
    fake_scores: Sequence[Float[Tensor, "batch _"]],
    *,
    length_ratios: Float[Tensor, " batch"] | None = None,
    reduction: ScoreReduction = "sum",
) -> Tensor:
    r"""Least-squares loss of a generator: its scores towards 1.

    .. math:: \sum_i \mathrm{E}[(1 - D_i(G))^2]

    The expectation runs over valid steps only.

    Args:
        fake_scores: for each discriminator ``(batch, time)``; another time for each.
        length_ratios: ``(batch,)`` in (0, 1]: an utterance is valid for ``ceil(ratio * time)`` steps; None: all are.
        reduction: ``"sum"`` over the discriminators, or ``"none"`` for one value each.

    Returns:
        A scalar or ``(discriminators,)``, in float32 for half precision, else in the dtype of the scores.

    Raises:
        ValueError: no discriminator, shapes that do not fit, ratios outside (0, 1].

    References:
        Mao et al. 2017, "Least squares generative adversarial networks", arXiv 1611.04076.

    Example:
        >>> import torch
        >>> from sonorant.functional import lsgan_generator_loss
        >>> lsgan_generator_loss([torch.tensor([[0.5, 0.0]])])
        tensor(0.6250)
        >>> lsgan_generator_loss([torch.tensor([[0.5, 0.0]])], length_ratios=torch.tensor([0.5]))
        tensor(0.2500)
    """
    check_reduction(reduction, ("none", "sum"))
    if not fake_scores:
        raise ValueError("fake_scores: no discriminator")
    _check_scores(fake_scores, length_ratios, "fake_scores")
    values = _mean_squares(_flattened(fake_scores) - 1, fake_scores, length_ratios)
    return values if reduction == "none" else values.sum()


def feature_matching_loss(
    real_maps: Sequence[Sequence[Float[Tensor, "batch ..."]]],
    fake_maps: Sequence[Sequence[Float[Tensor, "batch ..."]]],
    *,
    length_ratios: Float[Tensor, " batch"] | None = None,
) -> Tensor:
    r"""Mean absolute difference of the discriminators' feature maps, summed over all maps.

    .. math:: \sum_i \sum_l \mathrm{E}\,|D_i^l(x) - D_i^l(G)|

    The expectation runs over the valid cells of a map. Real maps get no gradient. Maps are read once (they are
    about half a gigabyte in HiFi-GAN): of each difference only the sign is kept, a byte, for the gradient.

    Args:
        real_maps: for each discriminator a list of maps ``(batch, channels, time)`` or
            ``(batch, channels, time, period)``.
        fake_maps: the same for generated waveforms.
        length_ratios: ``(batch,)`` in (0, 1]: an utterance is valid for ``ceil(ratio * time)`` steps; None: all are.

    Returns:
        A scalar, in float32 for half precision, else in the dtype of the maps.

    Raises:
        ValueError: different numbers of discriminators or maps, no map, shapes that differ, ratios outside (0, 1].

    References:
        Larsen et al. 2016, arXiv 1512.09300; Kumar et al. 2019, "MelGAN", arXiv 1910.06711; Kong, Kim and Bae 2020,
        "HiFi-GAN", arXiv 2010.05646.

    Example:
        >>> import torch
        >>> from sonorant.functional import feature_matching_loss
        >>> real, fake = torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[1.5, 0.0]]])
        >>> feature_matching_loss([[real]], [[fake]])
        tensor(1.2500)
    """
    _check_same_number(real_maps, fake_maps, "real_maps", "fake_maps")
    values = []
    for outer, (real_list, fake_list) in enumerate(zip(real_maps, fake_maps, strict=True)):
        _check_same_number(real_list, fake_list, f"real_maps[{outer}]", f"fake_maps[{outer}]")
        for inner, (real, fake) in enumerate(zip(real_list, fake_list, strict=True)):
            name = f"maps[{outer}][{inner}]"
            if real.shape != fake.shape or fake.dim() not in (3, 4):
                raise ValueError(
                    f"real_{name} is {tuple(real.shape)} and fake_{name} is {tuple(fake.shape)}; expected the same "
                    "(batch, channels, time) or (batch, channels, time, period)"
                )
            batch_size, num_channels, num_steps = fake.shape[:3]
            lengths = _valid_lengths(fake, length_ratios, num_steps, f"fake_{name}")
            period = fake.shape[3] if fake.dim() == 4 else 1
            total, _ = torch.ops.sonorant.feature_distance(
                fake.reshape(batch_size, num_channels, num_steps * period),
                real.detach().reshape(batch_size, num_channels, num_steps * period),
                lengths * period,
                fake.requires_grad and torch.is_grad_enabled(),
            )
            values.append(total / (lengths.sum() * (num_channels * period)))
    return torch.stack(values).sum()


def _check_same_number(real: Sequence[object], fake: Sequence[object], real_name: str, fake_name: str) -> None:
    if len(real) != len(fake):
        raise ValueError(f"{real_name} has {len(real)} entries, but {fake_name} has {len(fake)}")
    if not fake:
        raise ValueError(f"{fake_name} is empty")


def _check_scores(scores: Sequence[Tensor], length_ratios: Tensor | None, name: str) -> None:
    for index, score in enumerate(scores):
        if score.dim() != 2:
            raise ValueError(f"{name}[{index}] must have shape (batch, time); got {tuple(score.shape)}")
        if length_ratios is not None:
            _check_ratios_fit(length_ratios, score, f"{name}[{index}]")


def _check_ratios_fit(length_ratios: Tensor, tensor: Tensor, name: str) -> None:
    if length_ratios.shape != tensor.shape[:1]:
        raise ValueError(f"length_ratios has shape {tuple(length_ratios.shape)} for {name} of {tuple(tensor.shape)}")


def _valid_lengths(tensor: Tensor, length_ratios: Tensor | None, size: int, name: str) -> Tensor:
    if length_ratios is None:
        return torch.full(tensor.shape[:1], size, device=tensor.device)
    _check_ratios_fit(length_ratios, tensor, name)
    return ratio_lengths(length_ratios, size)


def _flattened(scores: Sequence[Tensor]) -> Tensor:
    """All discriminators' scores in a row: they are small and many, and what they cost is the number of operations."""
    return torch.cat([score.to(compute_dtype(score)).flatten() for score in scores])


def _mean_squares(differences: Tensor, scores: Sequence[Tensor], length_ratios: Tensor | None) -> Tensor:
    """For each discriminator the mean square of its flattened differences, over the valid steps of its scores."""
    sizes = [score.shape[1] for score in scores]
    if length_ratios is not None:
        of_size = {size: ratio_lengths(length_ratios, size) for size in set(sizes)}
        lengths = torch.stack([of_size[size] for size in sizes])
        masks = sequence_mask(lengths.flatten(), max(sizes)).view(len(scores), -1, max(sizes))
        valid = torch.cat([mask[:, :size].flatten() for mask, size in zip(masks, sizes, strict=True)])
        differences = torch.where(valid, differences, 0.0)
    parts = torch.split(differences.square(), [score.numel() for score in scores])
    if length_ratios is None:
        return torch.stack([part.mean() for part in parts])
    return torch.stack([part.sum() for part in parts]) / lengths.sum(1)


@torch.library.custom_op("sonorant::feature_distance", mutates_args=())
def _feature_distance(fake: Tensor, real: Tensor, lengths: Tensor, with_signs: bool) -> tuple[Tensor, Tensor]:
    """Over the valid cells of maps ``(batch, channels, cells)``: the sum of ``|fake - real|``, and int8 ``sign(fake -
    real)``, from which the gradient is made without reading the maps again. Without signs these are empty.
    """
    signs = fake.new_empty(fake.shape if with_signs else (0,), dtype=torch.int8)
    if _kernel_applies(fake, real):
        from sonorant.functional.kernels.adversarial import l1_sums, l1_sums_and_signs

        sums = torch.empty(len(fake), dtype=torch.float64)
        arrays = (real.contiguous().numpy(), fake.contiguous().numpy(), lengths.contiguous().numpy(), sums.numpy())
        if with_signs:
            kernels.run_over_batch(l1_sums_and_signs, len(fake), *arrays, signs.numpy())
        else:
            kernels.run_over_batch(l1_sums, len(fake), *arrays)
        return sums.sum().to(fake.dtype), signs
    difference = _masked_difference(fake, real, lengths)
    total = torch.linalg.vector_norm(difference, 1)
    if with_signs:
        signs.copy_(difference.sign_())
    return total, signs


@_feature_distance.register_fake
def _(fake: Tensor, real: Tensor, lengths: Tensor, with_signs: bool) -> tuple[Tensor, Tensor]:
    signs = fake.new_empty(fake.shape if with_signs else (0,), dtype=torch.int8)
    return fake.new_empty((), dtype=compute_dtype(fake)), signs


@torch.library.custom_op("sonorant::scaled_signs", mutates_args=())
def _scaled_signs(scale: Tensor, signs: Tensor) -> Tensor:
    """``scale * signs`` for a scalar and int8 ``(batch, channels, cells)``, without a copy of the signs as floats."""
    if signs.device.type == "cpu" and scale.dtype in _KERNEL_DTYPES and kernels.available():
        from sonorant.functional.kernels.adversarial import scale_signs

        product = signs.new_empty(signs.shape, dtype=scale.dtype)
        kernels.run_over_batch(scale_signs, len(signs), signs.numpy(), scale.numpy()[()], product.numpy())
        return product
    return signs.to(scale.dtype).mul_(scale)


@_scaled_signs.register_fake
def _(scale: Tensor, signs: Tensor) -> Tensor:
    return signs.new_empty(signs.shape, dtype=scale.dtype)


def _kernel_applies(fake: Tensor, real: Tensor) -> bool:
    supported = fake.dtype in _KERNEL_DTYPES and real.dtype == fake.dtype
    return supported and fake.device.type == "cpu" and kernels.available()


def _masked_difference(fake: Tensor, real: Tensor, lengths: Tensor) -> Tensor:
    """The one temporary of the batched form: ``fake - real``, 0 in padding, contiguous."""
    dtype = compute_dtype(fake)
    difference = fake - real if fake.dtype == real.dtype == dtype else fake.to(dtype, copy=True).sub_(real)
    return difference.masked_fill_(~sequence_mask(lengths, fake.shape[2]).unsqueeze(1), 0.0).contiguous()


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.dtype = inputs[0].dtype
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(output[1])


def _backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    (signs,) = ctx.saved_tensors
    return torch.ops.sonorant.scaled_signs(grad.to(ctx.dtype), signs), None, None, None


_feature_distance.register_autograd(_backward, setup_context=_setup_context)
