"""A pronouncer in use: words of any kind, folders, and what it refuses."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import sonorant
from sonorant.export.model_folder import ModelFolderError
from sonorant.inference import Pronouncer
from sonorant.inference.pronouncer import SearchConfig
from sonorant.models import G2pEnsemble
from tests.dictionaries import made_up_words, spell_out


@pytest.fixture(scope="module")
def trained(g2p_run: Path) -> Pronouncer:
    loaded = sonorant.load(g2p_run)
    assert isinstance(loaded, Pronouncer)
    return loaded


def test_pronounces_words_that_it_never_saw(trained: Pronouncer) -> None:
    words = [word for word in made_up_words(200, seed=1) if word not in trained.train_words]
    found = trained.pronounce_all(words)
    right = [best.phones == spell_out(word) for word, (best, *_) in zip(words, found, strict=True)]
    assert sum(right) >= 0.9 * len(right)


def test_the_case_of_letters_does_not_matter(trained: Pronouncer) -> None:
    assert trained.pronounce("DaB") == trained.pronounce("dab")


def test_the_batch_changes_nothing(pronouncer: Pronouncer) -> None:
    words = ["a", "abc", "b", "cabbaca", "ab'c"]
    together = pronouncer.pronounce_all(words, n_best=3)
    for word, found in zip(words, together, strict=True):
        (alone,) = pronouncer.pronounce_all([word], n_best=3)
        assert [best.phones for best in alone] == [best.phones for best in found]
        assert [best.score for best in alone] == pytest.approx([best.score for best in found], abs=1e-5)
    phones = [[best.phones for best in found] for found in together]
    again = pronouncer.pronounce_all(words, n_best=3, batch_size=2)
    assert [[best.phones for best in found] for found in again] == phones
    assert pronouncer.pronounce_all([]) == []


def test_n_best_are_different_and_sorted(trained: Pronouncer) -> None:
    (found,) = trained.pronounce_all(["dixak"], n_best=8)
    assert len({tuple(best.phones) for best in found}) == len(found) == 8
    assert [best.score for best in found] == sorted((best.score for best in found), reverse=True)
    assert sum(torch.tensor([best.score for best in found]).exp()) <= 1 + 1e-5


@pytest.mark.parametrize(
    "search", [SearchConfig(beam_size=1), SearchConfig(ctc_weight=0.3), SearchConfig(beam_size=64)]
)
def test_every_search_finds_what_is_clear(trained: Pronouncer, search: SearchConfig) -> None:
    assert trained.pronounce_all(["dak"], search=search)[0][0].phones == ["D", "AA", "K"]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("", "the word is empty"),
        ("  ", "the word is empty"),
        ("...", "'...' is nothing but punctuation"),
        ("'", "nothing but punctuation"),
        ("axbы", r"'axbы' has graphemes that the model does not know: 'x' at position 2, 'ы' at position 4"),
    ],
)
def test_words_that_cannot_be_pronounced(pronouncer: Pronouncer, word: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pronouncer.pronounce(word)


def test_punctuation_that_is_a_word_of_the_dictionary_is_pronounced(pronouncer: Pronouncer) -> None:
    pronouncer.train_words |= {"'"}
    assert pronouncer.pronounce("'")


def test_a_word_of_500_letters(trained: Pronouncer) -> None:
    long, short = "dak" * 166 + "ab", "ab"
    found = trained.pronounce_all([long, short])
    assert 1 <= len(found[0][0].phones) <= 4 * 500 + 12
    assert [best.phones for best in found[1]] == [best.phones for best in trained.pronounce_all([short])[0]]


def test_a_model_that_never_ends_stops_at_the_cap(pronouncer: Pronouncer, caplog: pytest.LogCaptureFixture) -> None:
    for member in pronouncer.model.members:
        torch.nn.init.constant_(member.output.bias, 0.0)
        member.output.bias.data[0] = -50.0
    with caplog.at_level(logging.WARNING):
        assert len(pronouncer.pronounce("abc").split()) == 4 * 3 + 12
    assert "reached max_length without an end" in caplog.text


def test_composed_and_decomposed_letters_are_the_same(pronouncer: Pronouncer) -> None:
    assert pronouncer.encode("cabe\u0301") == pronouncer.encode("cabé")


def test_attention_has_a_row_for_each_phone_and_the_end(pronouncer: Pronouncer) -> None:
    attention = pronouncer.attention("abc", ["AA", "B"])
    assert attention.shape == (3, 3)
    torch.testing.assert_close(attention.sum(1), torch.ones(3))


def test_the_attention_of_a_trained_model_goes_along_the_word(trained: Pronouncer) -> None:
    assert trained.attention("dakbe", ["D", "AA", "K", "B", "EH"])[:-1].argmax(1).tolist() == [0, 1, 2, 3, 4]


def test_an_ensemble_averages_probabilities(pronouncer: Pronouncer) -> None:
    ids = torch.tensor([[1, 2, 3]]), torch.tensor([3])
    states, memories = pronouncer.model.start(*ids)
    mixed = pronouncer.model.step(torch.tensor([0]), states, memories).log_probs.exp()
    alone = [G2pEnsemble([member]) for member in pronouncer.model.members]
    probs = [single.step(torch.tensor([0]), *single.start(*ids)).log_probs.exp() for single in alone]
    torch.testing.assert_close(mixed, (probs[0] + probs[1]) / 2)
    heads = [single.ctc_log_probs(single.start(*ids)[1]).values.exp() for single in alone]
    torch.testing.assert_close(pronouncer.model.ctc_log_probs(memories).values.exp(), (heads[0] + heads[1]) / 2)
    with pytest.raises(ValueError, match="at least one model"):
        G2pEnsemble([])


def test_the_folder_gives_back_the_same_pronouncer(pronouncer: Pronouncer, tmp_path: Path) -> None:
    pronouncer.search = SearchConfig(beam_size=3, ctc_weight=0.2)
    pronouncer.save(tmp_path / "model")
    again = sonorant.load(tmp_path)
    assert isinstance(again, Pronouncer)
    assert again.pronounce_all(["abc", "é"], n_best=2) == pronouncer.pronounce_all(["abc", "é"], n_best=2)
    assert (again.graphemes, again.phones) == (pronouncer.graphemes, pronouncer.phones)
    assert (again.search, again.train_words, again.recipe) == (pronouncer.search, {"ab", "ba"}, "g2p")


@pytest.mark.parametrize("name", ["graphemes.txt", "tokens.txt", "train_words.txt.gz"])
def test_a_damaged_folder_is_named(pronouncer: Pronouncer, tmp_path: Path, name: str) -> None:
    pronouncer.save(tmp_path / "model")
    (tmp_path / "model" / name).write_bytes(b"x")
    with pytest.raises(ModelFolderError, match="damaged or incomplete"):
        sonorant.load(tmp_path)
    (tmp_path / "model" / name).unlink()
    with pytest.raises(ModelFolderError, match=name):
        sonorant.load(tmp_path)


def test_a_search_that_the_model_cannot_do_is_refused(pronouncer: Pronouncer) -> None:
    for member in pronouncer.model.members:
        member.ctc = None
    with pytest.raises(ValueError, match="no CTC head"):
        pronouncer.pronounce_all(["a"], search=SearchConfig(ctc_weight=0.5))
    with pytest.raises(ValueError, match="must be at least 1"):
        pronouncer.pronounce_all(["a"], n_best=0)


def test_loading_and_pronouncing_needs_no_training_extra(pronouncer: Pronouncer, tmp_path: Path) -> None:
    pronouncer.save(tmp_path / "model")
    program = (
        "import sys\n"
        "for name in ('lightning', 'jsonargparse', 'rich', 'tensorboard', 'matplotlib', 'kaldialign', 'soundfile'):\n"
        "    sys.modules[name] = None\n"
        "import sonorant\n"
        f"print('phones:', sonorant.load({str(tmp_path)!r}).pronounce('abc'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"phones: {pronouncer.pronounce('abc')}\n"
