"""What is measured, on which inputs, and against what.

Labels say what a form is: "loop" and "masks" are the forms in common use that benchmarks/originals.py and
tests/reference hold; names of packages and functions are what a user would otherwise call.
"""

from functools import partial
from typing import Any

from tests.reference.alignment import forward_sum_by_item
from tests.reference.classification import label_smoothing_by_distribution
from tests.reference.normalization import cmvn_by_utterance
from torch.nn import functional as F

from benchmarks import inputs, originals, ours
from benchmarks.harness import Benchmark, Form
from sonorant import functional

CELLS = {"batch": 32, "frames": 800, "tokens": 150}
FEW_CELLS = {"batch": 4, "frames": 60, "tokens": 12}
MEMORY = {"batch": 16, "memory": 150, "memory_dim": 512, "attention_dim": 128}
LITTLE_MEMORY = {"batch": 2, "memory": 20, "memory_dim": 8, "attention_dim": 8, "steps": 3}
TOKENS, FEW_TOKENS = {"batch": 32, "length": 60, "classes": 5000}, {"batch": 2, "length": 5, "classes": 50}
GAN, SMALL_GAN = {"batch": 16, "samples": 8192}, {"batch": 2, "samples": 512}
WAVES, SHORT_WAVES = {"batch": 8, "samples": 32768}, {"batch": 2, "samples": 4096}
FRAMES, FEW_FRAMES = {"batch": 32, "channels": 128, "frames": 800}, {"batch": 3, "channels": 4, "frames": 20}
FEATURES, FEW_FEATURES = {"batch": 16, "frames": 800, "features": 80}, {"batch": 3, "frames": 20, "features": 4}
VECTORS, FEW_VECTORS = {"number": 1000, "dim": 256}, {"number": 20, "dim": 6}


def _search(name: str, original: Any, package: Any) -> Benchmark:
    mine = Form("ours", getattr(functional, name))
    installed, ready = "monotonic_alignment_search", originals.search_inputs_of_package
    others = (
        Form("loop over the batch, numba", original, package="numba"),
        Form("monotonic-alignment-search", lambda **given: package(**ready(given)), package=installed),
        Form("monotonic-alignment-search, in its layout", package, ready, installed),
    )
    return Benchmark(name, inputs.make_scores, CELLS, FEW_CELLS, mine, others, case=name)


def _location(name: str, steps: int, call: Any, case: str, *others: Form) -> Benchmark:
    return Benchmark(
        name,
        inputs.make_location,
        {**MEMORY, "steps": steps},
        LITTLE_MEMORY,
        Form("ours", call),
        (Form("loop over steps", originals.attend_by_step), *others),
        ("memory", "queries"),
        case,
        tolerance=1e-3,
    )


def _regression(name: str, loss: Any) -> Benchmark:
    mine = Form("ours", getattr(functional, name))
    others = (Form("multiplied by masks", partial(originals.regression, loss=loss)),)
    return Benchmark(name, inputs.make_regression, FEATURES, FEW_FEATURES, mine, others, ("prediction",), name)


def _regularizer(name: str, make: Any, sizes: dict[str, int], small: dict[str, int], original: Any) -> Benchmark:
    names = ("embeddings",) if make is inputs.make_embeddings else ("a", "b")
    mine, others = Form("ours", getattr(functional, name)), (Form("plain torch", original),)
    return Benchmark(name, make, sizes, small, mine, others, names, name)


BENCHMARKS = [
    Benchmark(
        "forward_sum_loss",
        inputs.make_scores,
        CELLS,
        FEW_CELLS,
        Form("ours", functional.forward_sum_loss),
        (
            Form("loop over the batch", forward_sum_by_item),
            Form("loop over padded[b]", originals.forward_sum_by_index),
            Form("one F.ctc_loss", originals.forward_sum_by_torch),
        ),
        ("log_attention",),
        "forward_sum_loss",
        tolerance=1e-2,  # torch's own gradient is off by some 1e-3 in float32
    ),
    _search("monotonic_alignment_search", originals.search_by_utterance, originals.search_by_package),
    _search("monotonic_alignment_durations", originals.durations_by_utterance, originals.durations_by_package),
    Benchmark(
        "attention_binarization_loss",
        inputs.make_alignment,
        CELLS,
        FEW_CELLS,
        Form("ours", functional.attention_binarization_loss),
        (Form("selected cells", originals.binarization),),
        ("attention",),
        "attention_binarization_loss",
    ),
    Benchmark(
        "beta_binomial_prior",
        inputs.make_lengths,
        CELLS,
        FEW_CELLS,
        Form("ours", functional.beta_binomial_prior),
        (Form("loop over utterances and frames", originals.prior_by_row),),
        case="beta_binomial_prior",
    ),
    _location("LocationAttention.attend_sequence, 40 steps", 40, ours.attend_sequence, "LocationAttention, sequence"),
    _location(
        "LocationAttention.attend_sequence, 800 steps",
        800,
        ours.attend_sequence,
        "LocationAttention, sequence",
        Form("loop over queries[:, step]", originals.attend_by_slice),
    ),
    _location("LocationAttention, single steps", 40, ours.attend_steps, "LocationAttention, step"),
    Benchmark(
        "guided_attention_loss",
        inputs.make_attention,
        CELLS,
        FEW_CELLS,
        Form("ours", functional.guided_attention_loss),
        (Form("stored weights", originals.guided_attention),),
        ("attention",),
        "guided_attention_loss",
    ),
    Benchmark(
        "masked_softmax",
        inputs.make_softmax,
        {"batch": 16, "heads": 4, "queries": 200, "keys": 200},
        {"batch": 2, "heads": 2, "queries": 5, "keys": 6},
        Form("ours", functional.masked_softmax),
        (Form("masked_fill, then softmax", originals.masked_softmax),),
        ("scores",),
        "masked_softmax",
    ),
    Benchmark(
        "label_smoothing_loss",
        inputs.make_targets,
        TOKENS,
        FEW_TOKENS,
        Form("ours", functional.label_smoothing_loss),
        (Form("stored targets", label_smoothing_by_distribution), Form("F.cross_entropy", originals.cross_entropy)),
        ("logits",),
        "label_smoothing_loss",
    ),
    Benchmark(
        "linear_label_smoothing_loss",
        inputs.make_hidden,
        {**TOKENS, "hidden": 256},
        {**FEW_TOKENS, "hidden": 8},
        Form("ours", ours.linear_loss),
        (Form("stored targets", originals.linear_by_targets), Form("F.cross_entropy", originals.linear_cross_entropy)),
        ("hidden", "weight", "bias"),
        "linear_label_smoothing_loss",
    ),
    Benchmark(
        "ctc_loss",
        inputs.make_ctc,
        {"batch": 16, "frames": 400, "labels": 60, "classes": 500},
        {"batch": 2, "frames": 30, "labels": 6, "classes": 9},
        Form("ours", ours.ctc),
        (Form("F.ctc_loss", originals.ctc_by_torch),),
        ("logits",),
        "ctc_loss",
        tolerance=1e-3,
    ),
    Benchmark(
        "feature_matching_loss",
        inputs.make_maps,
        GAN,
        SMALL_GAN,
        Form("ours", functional.feature_matching_loss),
        (Form("multiplied by masks", originals.feature_matching),),
        ("fake_maps",),
        "feature_matching_loss",
    ),
    Benchmark(
        "lsgan_discriminator_loss",
        inputs.make_scores_of_discriminators,
        GAN,
        SMALL_GAN,
        Form("ours", functional.lsgan_discriminator_loss),
        (Form("multiplied by masks", originals.discriminator),),
        ("real_scores", "fake_scores"),
        "lsgan_discriminator_loss",
    ),
    Benchmark(
        "lsgan_generator_loss",
        partial(inputs.make_scores_of_discriminators, kinds=("fake",)),
        GAN,
        SMALL_GAN,
        Form("ours", functional.lsgan_generator_loss),
        (Form("multiplied by masks", originals.generator),),
        ("fake_scores",),
        "lsgan_generator_loss",
    ),
    Benchmark(
        "multi_resolution_stft_loss",
        inputs.make_waves,
        WAVES,
        SHORT_WAVES,
        Form("ours", ours.stft),
        (Form("torch.stft", originals.stft_of_batch), Form("auraloss", originals.stft_by_auraloss, package="auraloss")),
        ("prediction",),
        "multi_resolution_stft_loss, utterance",
        tolerance=1e-3,  # float32 gradients near the floor
    ),
    Benchmark(
        "multi_resolution_stft_loss, lengths",
        inputs.make_waves_with_lengths,
        WAVES,
        SHORT_WAVES,
        Form("ours", ours.stft),
        (Form("loop over the batch", originals.stft_by_utterance),),
        ("prediction",),
        "multi_resolution_stft_loss, utterance",
        tolerance=1e-3,  # float32 gradients near the floor
    ),
    Benchmark(
        "multi_resolution_stft_loss, length ratios",
        inputs.make_waves_with_ratios,
        WAVES,
        SHORT_WAVES,
        Form("ours", partial(ours.stft, norm="frame")),
        (Form("multiplied by masks", originals.stft_by_frame),),
        ("prediction",),
        "multi_resolution_stft_loss, ratios",
        tolerance=1e-3,  # float32 gradients near the floor
    ),
    Benchmark(
        "masked_batch_norm",
        inputs.make_frames,
        FRAMES,
        FEW_FRAMES,
        Form("ours", ours.batch_norm),
        (Form("valid frames cut out", originals.batch_norm_of_cut_out),),
        ("x", "weight", "bias"),
        "masked_batch_norm, training",
    ),
    Benchmark(
        "masked_batch_norm, equal lengths",
        partial(inputs.make_frames, equal=True),
        FRAMES,
        FEW_FRAMES,
        Form("ours", ours.batch_norm),
        (Form("F.batch_norm", originals.batch_norm),),
        ("x", "weight", "bias"),
        "masked_batch_norm, training",
    ),
    Benchmark(
        "utterance_cmvn",
        inputs.make_features,
        FEATURES,
        FEW_FEATURES,
        Form("ours", functional.utterance_cmvn),
        (Form("loop over the batch", partial(cmvn_by_utterance, normalize_variance=True, eps=1e-5)),),
        ("features",),
        "utterance_cmvn",
    ),
    Benchmark(
        "Tdnn, equal lengths",
        inputs.make_tdnn,
        {"batch": 32, "frames": 800, "features": 80, "classes": 32},
        {"batch": 2, "frames": 40, "features": 5, "classes": 4},
        Form("ours", ours.tdnn),
        (Form("no lengths", originals.tdnn),),
        ("x",),
        "Tdnn, training",
        tolerance=1e-3,
    ),
    Benchmark(
        "flow_nll",
        inputs.make_flow,
        {"batch": 16, "frames": 800, "channels": 80, "flows": 8},
        {"batch": 2, "frames": 20, "channels": 4, "flows": 2},
        Form("ours", ours.flow),
        (Form("multiplied by masks", originals.flow),),
        ("z", "log_scales", "log_dets"),
        "flow_nll",
    ),
    _regression("masked_l1_loss", F.l1_loss),
    _regression("masked_mse_loss", F.mse_loss),
    _regression("masked_bce_with_logits_loss", F.binary_cross_entropy_with_logits),
    _regularizer("variance_loss", inputs.make_embeddings, VECTORS, FEW_VECTORS, originals.variance),
    _regularizer("covariance_loss", inputs.make_embeddings, VECTORS, FEW_VECTORS, originals.covariance),
    _regularizer(
        "cross_covariance_loss",
        inputs.make_pair,
        {**VECTORS, "other_dim": 64},
        {**FEW_VECTORS, "other_dim": 4},
        originals.cross_covariance,
    ),
    _regularizer(
        "invariance_loss",
        inputs.make_pair,
        {**VECTORS, "other_dim": 256},
        {**FEW_VECTORS, "other_dim": 6},
        originals.invariance,
    ),
]
