"""What one entry of the case table says about a public operation, and how the contracts run it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

Inputs = dict[str, Any]
Axes = dict[int, "str | Callable[[Inputs], Tensor]"]
GOLDEN = Path(__file__).parent.parent / "golden"


class Rng:
    """Seeded random tensors of one dtype."""

    def __init__(self, seed: int, dtype: torch.dtype = torch.float64) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.dtype = dtype

    def randn(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.generator, dtype=torch.float64).to(self.dtype)

    def rand(self, *shape: int) -> Tensor:
        return torch.rand(*shape, generator=self.generator, dtype=torch.float64).to(self.dtype)

    def randint(self, low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high, shape, generator=self.generator)


def _unchanged(inputs: Inputs) -> Inputs:
    return inputs


@dataclass(frozen=True)
class Case:
    """One public operation.

    ``make(lengths, rng)`` returns the tensors by argument name. ``lengths`` gives each lengths argument its smallest
    and largest value. ``pack`` turns tensors into the call's arguments where these are not all tensors (lists, say;
    see :func:`pack_lists`). ``padding`` says which axes of which argument are padded, and by which lengths;
    ``outputs`` the same for each output. ``per_utterance`` are the options under which axis 0 of every output is the
    batch (None: the utterances are coupled); ``duplicable`` those under which a batch put twice gives the same value.
    """

    name: str
    make: Callable[[dict[str, Tensor], Rng], Inputs]
    lengths: dict[str, tuple[int, int]]
    reference: Callable[..., Any]
    function: Callable[..., Any] | None = None
    module: Callable[..., nn.Module] | None = None
    module_arguments: tuple[str, ...] | None = None
    pack: Callable[[Inputs], Inputs] = _unchanged
    options: dict[str, Any] = field(default_factory=dict)
    call_options: tuple[str, ...] = ()  # options of the function that a Module takes from its state
    differentiable: tuple[str, ...] = ()
    padding: dict[str, Axes] = field(default_factory=dict)
    extra_padding: int = 3  # 0 where the valid part is given relative to the size
    outputs: tuple[Axes, ...] = ({},)
    unbatched: tuple[str, ...] = ()
    mutates: tuple[str, ...] = ()
    per_utterance: dict[str, Any] | None = None
    duplicable: tuple[dict[str, Any], ...] = ()
    training: bool = True
    golden: Callable[[dict[str, Tensor], dict[str, Any]], Iterable[tuple[str, Tensor, Tensor]]] | None = None
    golden_file: str = ""
    operator: Callable[[Inputs], tuple[Any, tuple[Any, ...]]] | None = None
    computes_in_float32: bool = True  # half inputs give a float32 result, and autocast changes nothing
    tolerance: float = 1e-5
    half_tolerance: float = 1e-5

    def inputs(self, seed: int = 0, dtype: torch.dtype = torch.float64, batch_size: int = 3) -> Inputs:
        """Inputs with lengths spread over their ranges, one of them at the largest."""
        rng = Rng(seed)
        drawn = {}
        for name, (low, high) in self.lengths.items():
            values = rng.randint(low, high + 1, batch_size)
            values[0] = high
            drawn[name] = values
        return cast(self.make(drawn, rng), dtype)

    def subject(self, dtype: torch.dtype = torch.float64, device: str = "cpu", **overrides: Any) -> Callable[..., Any]:
        """The function with its options bound, or the Module where there is no function."""
        options = {**self.options, **overrides}
        if self.function is None:
            module = self.build(dtype, device, **overrides)
            return module if self.pack is _unchanged else Packed(module, self.pack)
        function = self.function
        return lambda **inputs: function(**self.pack(inputs), **options)

    def build(self, dtype: torch.dtype = torch.float64, device: str = "cpu", **overrides: Any) -> nn.Module:
        """The Module, with reproducible parameters."""
        assert self.module is not None
        options = {**self.options, **overrides}
        with torch.random.fork_rng():
            torch.manual_seed(7)
            module = self.module(**{k: v for k, v in options.items() if k not in self.call_options})
        return module.to(device=device, dtype=dtype).train(self.training)

    def golden_cases(self, arguments: dict[str, dict[str, Any]]) -> Iterable[tuple[str, Tensor, Tensor]]:
        """(label, ours, recorded) for every recorded number."""
        assert self.golden is not None
        tensors = load_file(GOLDEN / f"{self.golden_file}.safetensors")
        for key, options in arguments[self.golden_file].items():
            mine = {name.removeprefix(f"{key}/"): t for name, t in tensors.items() if name.startswith(f"{key}/")}
            for label, actual, expected in self.golden(mine, options):
                yield f"{key}: {label}", actual, expected


class Packed(nn.Module):
    """A Module called with tensors by name, for one whose arguments are not all tensors."""

    def __init__(self, module: nn.Module, pack: Callable[[Inputs], Inputs]) -> None:
        super().__init__()
        self.module = module
        self.pack = pack

    def forward(self, **inputs: Any) -> Any:
        return self.module(**self.pack(inputs))


def pack_lists(*names: str) -> Callable[[Inputs], Inputs]:
    """Make ``NAME_0, NAME_1, ...`` the list ``NAME``, and ``NAME_0_0, NAME_0_1, NAME_1_0, ...`` a list of lists."""

    def pack(inputs: Inputs) -> Inputs:
        packed: Inputs = {name: [] for name in names}
        for key, value in inputs.items():
            name = next((name for name in names if key.startswith(f"{name}_")), None)
            if name is None:
                packed[key] = value
                continue
            place = packed[name]
            first, *second = key.removeprefix(f"{name}_").split("_")
            if second:
                if int(first) == len(place):
                    place.append([])
                place = place[int(first)]
            place.append(value)
        return packed

    return pack


@dataclass
class Result:
    """Cropped outputs and the gradients of a fixed weighted sum of them."""

    outputs: list[Tensor]
    gradients: dict[str, Tensor]
    inputs: Inputs


def run(case: Case, inputs: Inputs, subject: Callable[..., Any] | None = None, **overrides: Any) -> Result:
    """Call the subject on fresh leaves and differentiate a fixed weighting of its valid outputs."""
    floats = [t for t in inputs.values() if isinstance(t, Tensor) and t.is_floating_point()]
    dtype = floats[0].dtype if floats else torch.float64
    device = next((str(t.device) for t in inputs.values() if isinstance(t, Tensor)), "cpu")
    if subject is None:
        subject = case.subject(dtype, device, **overrides)
    leaves = {
        name: t.detach().clone().requires_grad_(name in case.differentiable) if isinstance(t, Tensor) else t
        for name, t in inputs.items()
    }
    outputs = [crop(out, axes, inputs) for out, axes in zip(flatten(subject(**leaves)), case.outputs, strict=True)]
    sources = {name: leaves[name] for name in case.differentiable}
    if isinstance(subject, nn.Module):
        sources |= {f"parameter {name}": p for name, p in subject.named_parameters()}
    gradients: dict[str, Tensor] = {}
    differentiable = [out for out in outputs if out.requires_grad]
    if sources and differentiable:
        total = sum(weighted_sum(out) for out in differentiable)
        found = torch.autograd.grad(total, list(sources.values()), allow_unused=True)
        gradients = {
            name: torch.zeros_like(sources[name]) if grad is None else grad
            for name, grad in zip(sources, found, strict=True)
        }
    return Result([out.detach() for out in outputs], gradients, leaves)


def weighted_sum(tensor: Tensor) -> Tensor:
    """A sum in which every element counts differently."""
    weights = torch.cos(torch.arange(tensor.numel(), device=tensor.device, dtype=torch.float64))
    return (tensor.double() * weights.view(tensor.shape)).sum()


def flatten(output: Any) -> list[Tensor]:
    return [output] if isinstance(output, Tensor) else list(output)


def cast(inputs: Inputs, dtype: torch.dtype | None = None, device: str | None = None) -> Inputs:
    """The inputs with the floating tensors in another dtype, everything on another device."""

    def convert(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        return value.to(device=device, dtype=dtype if value.is_floating_point() else None)

    return {name: convert(value) for name, value in inputs.items()}


def valid_mask(tensor: Tensor, axes: Axes, inputs: Inputs) -> Tensor:
    """True where every padded axis is within its lengths; broadcasts over the others."""
    mask = torch.ones(tensor.shape, dtype=torch.bool, device=tensor.device)
    for axis, source in axes.items():
        lengths = inputs[source] if isinstance(source, str) else source(inputs)
        shape = [1] * tensor.dim()
        shape[axis] = tensor.shape[axis]
        positions = torch.arange(tensor.shape[axis], device=tensor.device).view(shape)
        mask &= positions < lengths.to(tensor.device).view(-1, *[1] * (tensor.dim() - 1))
    return mask


def crop(tensor: Tensor, axes: Axes, inputs: Inputs) -> Tensor:
    """The tensor without what lies beyond the longest length, zero beyond each utterance's own."""
    if not axes:
        return tensor
    tensor = torch.where(valid_mask(tensor, axes, inputs), tensor, torch.zeros((), dtype=tensor.dtype))
    for axis, source in axes.items():
        lengths = inputs[source] if isinstance(source, str) else source(inputs)
        tensor = tensor.narrow(axis, 0, min(int(lengths.max()), tensor.shape[axis]))
    return tensor


def poison(case: Case, inputs: Inputs) -> Inputs:
    """The same batch with more padding, filled with NaN or impossible ids."""
    poisoned = dict(inputs)
    for name, axes in case.padding.items():
        old = inputs[name]
        shape = [size + case.extra_padding if axis in axes else size for axis, size in enumerate(old.shape)]
        fill = torch.nan if old.is_floating_point() else True if old.dtype == torch.bool else -12345
        new = torch.full(shape, fill, dtype=old.dtype)
        region = tuple(slice(size) for size in old.shape)
        new[region] = torch.where(valid_mask(old, axes, inputs), old, new[region])
        poisoned[name] = new
    return poisoned


def utterance(case: Case, inputs: Inputs, index: int) -> Inputs:
    """One utterance of the batch, without padding."""
    single = {
        name: value if name in case.unbatched or not isinstance(value, Tensor) else value[index : index + 1]
        for name, value in inputs.items()
    }
    for name, axes in case.padding.items():
        for axis, source in axes.items():
            lengths = single[source] if isinstance(source, str) else source(single)
            single[name] = single[name].narrow(axis, 0, int(lengths[0]))
    return single
