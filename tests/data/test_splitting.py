"""Dev sets held out of a corpus."""

from collections import Counter
from pathlib import Path

import pytest

from sonorant.data.manifest import Utterance
from sonorant.data.splitting import hold_out


def corpus(counts: dict[str | None, int]) -> list[Utterance]:
    return [
        Utterance(f"{speaker}-{i}", Path("x.wav"), "a", speaker)
        for speaker, count in counts.items()
        for i in range(count)
    ]


def test_every_speaker_gives_the_same_share() -> None:
    utterances = corpus({"ann": 100, "ben": 40, "cem": 20})
    train, dev = hold_out(utterances, 0.1, 500)
    assert Counter(utterance.speaker for utterance in dev) == {"ann": 10, "ben": 4, "cem": 2}
    assert sorted([*train, *dev], key=utterances.index) == utterances
    assert train == sorted(train, key=utterances.index)
    assert hold_out(utterances, 0.1, 500) == (train, dev)
    assert hold_out(utterances[::-1], 0.1, 500)[1] == dev[::-1]


def test_bounds() -> None:
    utterances = corpus({None: 1000})
    assert len(hold_out(utterances, 0.1, 50)[1]) == 50
    assert hold_out(utterances, 0.0, 50) == (utterances, [])
    assert len(hold_out(utterances[:2], 0.1, 50)[1]) == 1
    assert len(hold_out(utterances[:3], 0.99, 50)[0]) == 1
    with pytest.raises(ValueError, match="two are needed"):
        hold_out(utterances[:1], 0.1, 50)
    with pytest.raises(ValueError, match="share must lie"):
        hold_out(utterances, 1.0, 50)


def test_one_more_utterance_moves_few_others() -> None:
    utterances = corpus({"ann": 200})
    first = {utterance.id for utterance in hold_out(utterances, 0.1, 500)[1]}
    second = {utterance.id for utterance in hold_out([*utterances, *corpus({"ann": 201})[-1:]], 0.1, 500)[1]}
    assert len(first ^ second) <= 2
