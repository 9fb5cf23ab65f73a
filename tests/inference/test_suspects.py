"""Which alignments people are asked to look at."""

import json

import pytest

from sonorant.inference.alignment import AlignedToken, AlignedWord, Alignment
from sonorant.inference.suspects import Typical, find_suspects, typical


def alignment(score: float = -0.1, worst: float = -0.5, duration: float = 0.1, token: str = "A") -> Alignment:
    first = AlignedToken(token, 0.5, 0.5 + duration, worst)
    second = AlignedToken("B", first.end, first.end + 0.2, -0.05)
    words = [AlignedWord("a", first.start, first.end, [first]), AlignedWord("b", second.start, second.end, [second])]
    return Alignment(words, [first, second], 2.0, score)


def corpus(number: int) -> list[Alignment]:
    return [alignment(-0.1 - 0.01 * (n % 5), -0.5 - 0.1 * (n % 5), 0.1 + 0.01 * (n % 5)) for n in range(number)]


def test_nothing_is_suspicious_about_what_is_usual() -> None:
    assert find_suspects(corpus(30)) == []


def test_what_is_suspicious_and_why() -> None:
    wrong = [alignment(score=-1.0), alignment(worst=-9.0), alignment(duration=1.2), alignment(-3.0, -9.0)]
    found = find_suspects([*corpus(30), *wrong])
    assert [suspect.number for suspect in found] == [33, 31, 30, 32]
    assert found[0].distance == max(suspect.distance for suspect in found)
    assert found[0].reasons == [
        "score -3.00, usually -0.12",
        "'a' at 0.50 s has score -9.00, the worst word usually -0.70",
    ]
    assert [suspect.reasons for suspect in found[1:]] == [
        ["'a' at 0.50 s has score -9.00, the worst word usually -0.70"],
        ["score -1.00, usually -0.12"],
        ["A of 'a' at 0.50 s lasts 1.20 s, usually 0.12 s"],
    ]


def test_of_a_few_the_model_knows_what_is_usual() -> None:
    usual = typical(corpus(30))
    few = [alignment(score=-1.0), alignment()]
    assert [suspect.number for suspect in find_suspects(few, usual)] == [0]
    assert find_suspects(few) == []
    assert Typical.from_json(json.loads(json.dumps(usual._asdict()))) == usual


def test_a_rare_token_is_compared_with_all() -> None:
    usual = typical([*corpus(30), alignment(token="C")])
    assert usual.durations.keys() == {"", "A", "B"}
    assert find_suspects([alignment(token="C", duration=5.0)], usual)[0].reasons == [
        "C of 'a' at 0.50 s lasts 5.00 s, usually 0.17 s"
    ]


@pytest.mark.parametrize("number", [1, 2])
def test_deviations_are_never_nothing(number: int) -> None:
    usual = typical([alignment()] * number)
    assert find_suspects([alignment(score=-0.15, worst=-0.6, duration=0.11)], usual) == []
