"""Every contract, for every entry of the case table."""

import copy
import inspect
import json
import pickle
import shutil
from collections.abc import Callable
from typing import Any

import pytest
import torch
from beartype import beartype
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jaxtyping import jaxtyped
from torch import Tensor, nn

import sonorant
import sonorant.functional
import sonorant.losses
import sonorant.nn
from tests.cases import CASES
from tests.cases.case import GOLDEN, Case, Inputs, Rng, cast, crop, flatten, poison, run, utterance, valid_mask

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
HALVES = [torch.float16, torch.bfloat16]
WITH_MODULE = [case for case in CASES if case.module is not None]


def over(cases: list[Case]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def has_floats(case: Case) -> bool:
    return any(isinstance(t, Tensor) and t.is_floating_point() for t in case.inputs().values())


FLOATING = [case for case in CASES if has_floats(case)]


def reference(case: Case, inputs: Inputs, **overrides: Any) -> list[Tensor]:
    """The slow version in float64 on the CPU; the caller's tensors stay in the graph."""
    arguments = {name: t.clone() if name in case.mutates else t for name, t in inputs.items()}
    if case.function is None:
        output = case.reference(case.build(**overrides), **case.pack(arguments))
    else:
        output = case.reference(**case.pack(arguments), **case.options, **overrides)
    return [crop(out, axes, inputs) for out, axes in zip(flatten(output), case.outputs, strict=True)]


def close(actual: Tensor, expected: Tensor, tolerance: float) -> None:
    """Equal up to a tolerance relative to the largest expected value (at least 1)."""
    assert actual.shape == expected.shape
    if expected.is_floating_point():
        actual, expected = actual.double().cpu(), expected.double().cpu()
        scale = max(1.0, float(expected.detach().abs().max())) if expected.numel() else 1.0
        torch.testing.assert_close(actual, expected, rtol=0, atol=tolerance * scale)
    else:
        assert torch.equal(actual.cpu(), expected.cpu())


def same(actual: list[Tensor], expected: list[Tensor], tolerance: float) -> None:
    assert len(actual) == len(expected)
    for mine, theirs in zip(actual, expected, strict=True):
        close(mine, theirs, tolerance)


def test_every_public_operation_has_a_case() -> None:
    functions = {case.function for case in CASES}
    modules = {base for case in WITH_MODULE for base in type(case.build()).__mro__}  # a case may adapt its Module
    public = [
        getattr(package, name)
        for package in (sonorant.functional, sonorant.losses, sonorant.nn)
        for name in package.__all__
    ]
    missing = [
        thing
        for thing in public
        if (inspect.isfunction(thing) and thing not in functions)
        or (inspect.isclass(thing) and issubclass(thing, nn.Module) and thing not in modules)
    ]
    assert not missing, f"public, but without an entry in tests/cases: {missing}"


@over(CASES)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_values_and_gradients_match_the_reference(case: Case, device: str, dtype: torch.dtype) -> None:
    tolerance = 1e-9 if dtype == torch.float64 else case.tolerance
    inputs = case.inputs()
    exact = cast(inputs)
    for name in case.differentiable:
        exact[name] = exact[name].clone().requires_grad_()
    expected = reference(case, exact)
    result = run(case, cast(inputs, dtype, device))
    same(result.outputs, [out.detach() for out in expected], tolerance)
    if case.differentiable:
        slow = run(case, inputs, subject=lambda **leaves: reference(case, leaves))
        for name in case.differentiable:
            close(result.gradients[name], slow.gradients[name], tolerance)


@over([case for case in CASES if case.golden])
def test_golden_numbers(case: Case) -> None:
    arguments = json.loads((GOLDEN / "cases.json").read_text())
    compared = 0
    for label, actual, expected in case.golden_cases(arguments):
        compared += 1
        assert actual.shape == expected.shape, label
        torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-9, msg=lambda m, label=label: f"{label}: {m}")
    assert compared


@over([case for case in CASES if case.differentiable])
def test_gradcheck(case: Case) -> None:
    inputs = case.inputs(batch_size=2)
    fixed = {name: t for name, t in inputs.items() if name not in case.differentiable}

    def call(*leaves: Tensor) -> tuple[Tensor, ...]:
        arguments = {k: v.clone() if k in case.mutates else v for k, v in fixed.items()}
        arguments |= dict(zip(case.differentiable, leaves, strict=True))
        outputs = zip(flatten(case.subject()(**arguments)), case.outputs, strict=True)
        return tuple(crop(out, axes, inputs) for out, axes in outputs if out.is_floating_point())

    leaves = [inputs[name].clone().requires_grad_() for name in case.differentiable]
    assert torch.autograd.gradcheck(call, leaves, fast_mode=sum(leaf.numel() for leaf in leaves) > 200)


@over([case for case in CASES if case.padding])
def test_padding_changes_nothing(case: Case) -> None:
    inputs = case.inputs()
    clean, padded = run(case, inputs), run(case, poison(case, inputs))
    same(padded.outputs, clean.outputs, 1e-12)
    assert padded.gradients.keys() == clean.gradients.keys()
    for name, gradient in padded.gradients.items():
        assert gradient.isfinite().all(), f"gradient of {name}"
        axes = case.padding.get(name, {})
        close(crop(gradient, axes, padded.inputs), crop(clean.gradients[name], axes, inputs), 1e-12)
        if axes:
            outside = gradient[~valid_mask(gradient, axes, padded.inputs)]
            assert not outside.any(), f"gradient of {name} in padding"


@over([case for case in CASES if case.per_utterance is not None])
def test_a_batch_equals_its_utterances(case: Case) -> None:
    inputs = case.inputs(batch_size=4)
    overrides = case.per_utterance or {}
    batch = run(case, inputs, **overrides)
    for index in range(4):
        alone = run(case, utterance(case, inputs, index), **overrides)
        for whole, single in zip(batch.outputs, alone.outputs, strict=True):
            row = whole[index : index + 1]
            close(row[tuple(slice(size) for size in single.shape)], single, 1e-12)


@over([case for case in CASES if case.duplicable])
def test_a_batch_put_twice_has_the_same_mean(case: Case) -> None:
    inputs = case.inputs()
    twice = {
        name: torch.cat([t, t]) if isinstance(t, Tensor) and name not in case.unbatched else t
        for name, t in inputs.items()
    }
    for overrides in case.duplicable:
        same(run(case, twice, **overrides).outputs, run(case, inputs, **overrides).outputs, 1e-12)


@over(CASES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(data=st.data())
def test_any_lengths(case: Case, data: st.DataObject) -> None:
    batch_size = data.draw(st.integers(1, 4), label="batch")
    lengths = {
        name: torch.tensor(
            data.draw(st.lists(st.integers(*bounds), min_size=batch_size, max_size=batch_size), label=name)
        )
        for name, bounds in case.lengths.items()
    }
    inputs = cast(case.make(lengths, Rng(data.draw(st.integers(0, 9), label="seed"))), torch.float64)
    result = run(case, inputs)
    same(result.outputs, [out.detach() for out in reference(case, inputs)], 1e-9)
    for name, gradient in result.gradients.items():
        assert gradient.isfinite().all(), f"gradient of {name}"


@over(FLOATING)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("device", DEVICES)
def test_half_precision(case: Case, dtype: torch.dtype, device: str) -> None:
    half = cast(case.inputs(), dtype, device)
    result = run(case, half)
    expected = reference(case, cast(half, torch.float64, "cpu"))
    for mine, theirs in zip(result.outputs, expected, strict=True):
        if mine.is_floating_point():
            assert mine.dtype == (torch.float32 if case.computes_in_float32 else dtype)
        close(mine, theirs.detach(), case.half_tolerance)
    for name, gradient in result.gradients.items():
        assert gradient.isfinite().all(), f"gradient of {name}"


@over(FLOATING)
@pytest.mark.parametrize("device", DEVICES)
def test_autocast(case: Case, device: str) -> None:
    inputs = cast(case.inputs(), torch.float32, device)
    plain = run(case, inputs)
    with torch.autocast(device, torch.bfloat16):
        mixed = run(case, inputs)
    same(mixed.outputs, plain.outputs, 0.0 if case.computes_in_float32 else case.half_tolerance)


def compiled_equals_eager(case: Case, backend: str, device: str) -> None:
    torch._dynamo.reset()
    subject = case.subject(torch.float32, device)
    compiled = torch.compile(subject, fullgraph=True, backend=backend)
    for seed in (0, 1):  # the second batch has other shapes
        inputs = cast(case.inputs(seed, batch_size=3 + seed), torch.float32, device)
        eager = run(case, inputs, subject=case.subject(torch.float32, device))
        fast = run(case, inputs, subject=compiled)
        same(fast.outputs, eager.outputs, case.tolerance)
        for name in case.differentiable:
            close(fast.gradients[name], eager.gradients[name], case.tolerance)


@over(CASES)
@pytest.mark.parametrize("device", DEVICES)
def test_compiles_in_one_graph(case: Case, device: str) -> None:
    compiled_equals_eager(case, "aot_eager", device)


@pytest.mark.slow
@over(CASES)
@pytest.mark.parametrize("device", DEVICES)
def test_compiles_with_inductor(case: Case, device: str) -> None:
    if device == "cpu" and not shutil.which("c++"):
        pytest.skip("inductor needs a C++ compiler, and none is on the PATH")
    compiled_equals_eager(case, "inductor", device)


@over([case for case in CASES if case.operator])
@pytest.mark.parametrize("device", DEVICES)
def test_custom_operator(case: Case, device: str) -> None:
    assert case.operator is not None
    for dtype in (torch.float32, torch.float64):
        operator, arguments = case.operator(cast(case.inputs(), dtype, device))
        torch.library.opcheck(operator, arguments)


@over(CASES)
def test_non_contiguous_inputs(case: Case) -> None:
    inputs = case.inputs()

    def strided(t: Any) -> Any:
        return torch.stack([t, t], -1)[..., 0] if isinstance(t, Tensor) and t.dim() > 1 else t

    # no clone on the way: it would make the tensors contiguous
    outputs = flatten(case.subject()(**{name: strided(t) for name, t in inputs.items()}))
    cropped = [crop(out, axes, inputs) for out, axes in zip(outputs, case.outputs, strict=True)]
    same(cropped, run(case, case.inputs()).outputs, 1e-12)


@over(CASES)
def test_inputs_are_not_modified(case: Case) -> None:
    inputs = case.inputs()
    before = copy.deepcopy(inputs)
    case.subject()(**inputs)
    for name, value in before.items():
        if isinstance(value, Tensor) and name not in case.mutates:
            assert torch.equal(inputs[name], value), name


@over([case for case in CASES if case.lengths])
def test_bad_lengths_are_named(case: Case) -> None:
    inputs = case.inputs()
    for name, (_, high) in case.lengths.items():
        if name not in inputs:  # `make` turned it into something else
            continue
        good = inputs[name]
        negative, beyond = good.clone(), good.clone()
        negative[1], beyond[1] = -2, high + 50
        has_batch = len(inputs) > len(case.lengths)
        for bad in (good.float() / high, good.float(), negative, good.unsqueeze(0), *[good[:-1]] * has_batch):
            with pytest.raises(ValueError, match=name):
                case.subject()(**{**inputs, name: bad})
        with pytest.raises(ValueError, match=rf"{name}\[1\] is -2"):
            case.subject()(**{**inputs, name: negative})
        with pytest.raises(ValueError, match=rf"{name}\[1\] is {high + 50}"):
            case.subject()(**{**inputs, name: beyond})


@over([case for case in CASES if case.function])
def test_annotations_hold(case: Case) -> None:
    assert case.function is not None
    checked = jaxtyped(case.function, typechecker=beartype)
    checked(**case.pack(case.inputs()), **case.options)


@over(WITH_MODULE)
def test_module_equals_function(case: Case) -> None:
    module = case.build()
    inputs = case.inputs()
    names = case.module_arguments or tuple(inputs)
    subset = {name: inputs[name] for name in names}
    output = flatten(module(**case.pack(subset)))
    if case.function is None:
        expected = flatten(case.build()(**case.pack(subset)))
    else:
        neutral = {"weight": None, "bias": None}
        given = {**inputs, **{k: v for k, v in neutral.items() if k in inputs and k not in names}}
        expected = flatten(case.subject()(**given))
    same(output, expected, 1e-12)


@over(WITH_MODULE)
def test_module_survives_copy_pickle_and_state_dict(case: Case) -> None:
    module = case.build()
    inputs = {name: t for name, t in case.inputs().items() if name in (case.module_arguments or case.inputs())}
    fresh = case.build()
    fresh.load_state_dict(module.state_dict(), strict=True)
    copies = [copy.deepcopy(module), pickle.loads(pickle.dumps(module)), fresh]
    inputs = case.pack(inputs)
    expected = flatten(module(**inputs))
    for twin in copies:
        same(flatten(twin(**inputs)), expected, 0.0)
        for name, value in twin.state_dict().items():
            assert torch.equal(value, module.state_dict()[name]), name
    assert repr(module)
