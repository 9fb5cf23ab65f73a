"""The command line."""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from sonorant.cli import main
from sonorant.data.fsdd import FsddCorpus
from sonorant.data.textgrid import read_textgrid
from sonorant.inference import Recognizer

Write = Callable[..., Path]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def model(recognizer: Recognizer, tmp_path: Path) -> str:
    recognizer.save(tmp_path / "run" / "model")
    return str(tmp_path / "run")


def test_help_lists_the_recipes_without_importing_torch() -> None:
    program = (
        "import sys\n"
        "from sonorant.cli import main\n"
        "status = main(['train', '--help'])\n"
        "heavy = {'torch', 'lightning', 'numpy', 'jsonargparse'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else status)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "yesno" in done.stdout


def test_help_of_a_recipe_lists_its_settings(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["train", "yesno", "--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    for setting in ("--model.hidden_channels", "--trainer.devices", "--seed", "--config", "--resume", "--print_config"):
        assert setting in shown


def test_transcribes_files_in_order(model: str, write_wav: Write, capsys: Capture) -> None:
    paths = [str(write_wav(name, seconds=2)) for name in ("b.wav", "a.wav")]
    assert main(["transcribe", model, *paths]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[0] for line in lines] == paths


def test_reads_paths_from_stdin(model: str, write_wav: Write, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_wav("a b.wav")
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{path}\r\n\n"))
    assert main(["transcribe", model, "--decoder", "greedy", "-"]) == 0
    assert capsys.readouterr().out.startswith(f"{path}\t")


def test_one_bad_file_does_not_stop_the_others(model: str, write_wav: Write, capsys: Capture) -> None:
    good, short = write_wav("good.wav"), write_wav("short.wav", seconds=0.1)
    assert main(["transcribe", model, "gone.wav", str(short), str(good)]) == 2
    output = capsys.readouterr()
    assert [line.split("\t")[0] for line in output.out.splitlines()] == [str(good)]
    assert "gone.wav: no such file" in output.err
    assert "short.wav: too short: 10 frames" in output.err


def test_json_gives_words_with_times_and_confidences(model: str, write_wav: Write, capsys: Capture) -> None:
    paths = [str(write_wav(name, seconds=2)) for name in ("b.wav", "é.wav")]
    for decoder in ("wfst", "greedy"):
        assert main(["transcribe", model, *paths, "--json", "--decoder", decoder]) == 0
        lines = capsys.readouterr().out.splitlines()
        found = [json.loads(line) for line in lines]
        assert [item["path"] for item in found] == paths
        assert "é" in lines[1]
        for item in found:
            assert item.keys() == {"path", "text", "duration", "words"}
            assert item["text"] == " ".join(word["word"] for word in item["words"])
            assert all(word.keys() == {"word", "start", "end", "confidence"} for word in item["words"])


def test_textgrids_of_equal_names_in_different_folders(
    model: str, write_wav: Write, tmp_path: Path, capsys: Capture
) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
    paths = [str(write_wav(f"{folder}/a.wav", seconds=2)) for folder in ("x", "y")]
    out = tmp_path / "grids" / "new"
    assert main(["transcribe", model, *paths, "--textgrid", str(out)]) == 0
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == paths
    assert sorted(path.name for path in out.iterdir()) == ["a-2.TextGrid", "a.TextGrid"]
    assert read_textgrid(out / "a.TextGrid").duration == 2
    assert main(["transcribe", model, paths[0], "--textgrid", str(out)]) == 2
    assert "a.TextGrid is there already" in capsys.readouterr().err


def test_another_lexicon_and_language_model(model: str, write_wav: Write, tmp_path: Path, capsys: Capture) -> None:
    path = str(write_wav("a.wav", seconds=2))
    lexicon, arpa = tmp_path / "lexicon.txt", tmp_path / "lm.arpa"
    lexicon.write_text("nay N\nyea Y\n")
    arpa.write_text("rubbish")
    assert main(["transcribe", model, path, "--lexicon", str(lexicon)]) == 0
    assert set(capsys.readouterr().out.strip().partition("\t")[2].split()) <= {"nay", "yea"}
    assert main(["transcribe", model, path, "--language-model", str(arpa)]) == 2
    assert f"{arpa}: not a language model" in capsys.readouterr().err


def test_evaluates_a_table(model: str, write_wav: Write, tmp_path: Path, capsys: Capture) -> None:
    write_wav("a.wav", seconds=2)
    table = tmp_path / "table.tsv"
    table.write_text("a.wav\tYES NO YES\n")
    assert main(["evaluate", model, "--data", str(table), "--json"]) == 0
    rates = json.loads(capsys.readouterr().out)
    assert rates.keys() == {"greedy", "wfst"}
    assert rates["wfst"].keys() >= {"errors", "words", "wer", "insertions", "deletions", "substitutions"}
    assert rates["wfst"]["words"] == 3
    assert main(["evaluate", model, "--data", str(table)]) == 0
    assert "95 % interval" in capsys.readouterr().out


def test_evaluating_names_all_faults_before_it_starts(
    model: str, write_wav: Write, tmp_path: Path, capsys: Capture
) -> None:
    write_wav("a.wav", seconds=2)
    write_wav("short.wav", seconds=0.1)
    write_wav("fast.wav", sample_rate=16000)
    table = tmp_path / "table.tsv"
    table.write_text("a.wav\tYES MAYBE\nshort.wav\tNO\nfast.wav\tNO\nno tab\ngone.wav\tNO\n")
    assert main(["evaluate", model, "--data", str(table)]) == 2
    message = capsys.readouterr().err
    for fault in (
        "(4)",
        "tsv:2: short.wav: 0.10 s give 0 frames",
        "fast.wav: the sample rate is 16000 Hz",
        "tsv:4: ",
        "gone.wav",
    ):
        assert fault in message
    assert main(["evaluate", model, "--data", str(table), "--skip-bad", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["wfst"]["words"] == 2


def test_evaluates_stretches_of_a_kaldi_folder(model: str, write_wav: Write, tmp_path: Path, capsys: Capture) -> None:
    write_wav("a.wav", seconds=2)
    (tmp_path / "wav.scp").write_text("r a.wav\n")
    (tmp_path / "segments").write_text("a r 0 1\nb r 1 2\n")
    (tmp_path / "text").write_text("a YES\nb NO NO\n")
    assert main(["evaluate", model, "--data", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["wfst"]["words"] == 3


@pytest.fixture
def table(write_wav: Write, tmp_path: Path) -> str:
    """Of four lines, the first is good."""
    write_wav("good.wav")
    write_wav("fast.wav", sample_rate=16000)
    lines = ("good.wav\tYES NO", "fast.wav\tMAYBE  NO", "no tab", "gone.wav\tNO")
    (tmp_path / "table.tsv").write_text("\n".join(lines))
    return str(tmp_path / "table.tsv")


def test_checking_lists_every_fault_and_counts_them(table: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "lexicon.txt").write_text("YES Y EH S\nNO N OW\n")
    assert main(["data", "check", table, "--sample-rate=8000", f"--lexicon={tmp_path}/lexicon.txt", "--jobs=2"]) == 1
    assert capsys.readouterr().out.replace(f"{tmp_path}/", "").splitlines() == [
        "table.tsv:3: error: expected path<TAB>text[<TAB>speaker[<TAB>accent]]; got 'no tab'",
        "table.tsv:2: warning: fast.wav: the transcript holds several spaces in a row",
        "table.tsv:2: error: fast.wav: word 'MAYBE' is not in the lexicon",
        "table.tsv:2: error: fast.wav: the sample rate is 16000 Hz; 8000 Hz is needed (resample it first)",
        "table.tsv:4: error: gone.wav: no such file",
        "utterances: 3, errors: 4, warnings: 1",
        "  error   vocabulary                     1",
        "  error   table                          1",
        "  error   sample rate                    1",
        "  error   missing                        1",
        "  warning odd text                       1",
    ]


def test_a_clean_corpus_and_one_with_warnings_pass(table: str, capsys: Capture) -> None:
    path = Path(table)
    path.write_text("good.wav\tYES NO\n")
    assert main(["data", "check", table]) == 0
    assert capsys.readouterr().out == "utterances: 1, errors: 0, warnings: 0\n"
    path.write_text("good.wav\tYES  NO\n")
    assert main(["data", "check", table]) == 0
    assert "errors: 0, warnings: 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ([], []),
        (["--sample-rate=8000"], ["sample rate"]),
        (["--sample-rate=8000", "--resample"], []),
        (["--min-duration=1.5"], ["duration"]),
        (["--max-duration=0.5"], ["duration"]),
        (["--frames-per-second=5"], ["too short for its text"]),
        (["--frames-per-second=6"], []),
        (["--shrink=95"], ["too short for its text"]),
        (["--shrink=94"], []),
        (["--characters=YESNO"], []),
        (["--characters=YES"], ["vocabulary"]),
        (["--characters=FILE"], ["vocabulary"]),
    ],
)
def test_what_is_checked_can_be_chosen(
    options: list[str], kinds: list[str], table: str, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "FILE").write_text("Y\nE\nN\nO\n")
    options = [option.replace("FILE", str(tmp_path / "FILE")) for option in options]
    Path(table).write_text("fast.wav\tYES NO\n")
    assert main(["data", "check", table, "--json", *options]) == (1 if kinds else 0)
    report = json.loads(capsys.readouterr().out)
    assert report["utterances"] == 1
    assert [fault["kind"] for fault in report["faults"]] == kinds
    for fault in report["faults"]:
        assert fault.keys() == {"source", "id", "kind", "message", "is_error"}
        assert (fault["source"], fault["id"], fault["is_error"]) == (f"{table}:1", "fast.wav", True)


def test_characters_outside_the_vocabulary_are_named(table: str, capsys: Capture) -> None:
    assert main(["data", "check", table, "--characters=YESNO"]) == 1
    assert "fast.wav: characters that are not allowed: 'M', 'A', 'B'" in capsys.readouterr().out


def test_mixing_channels_can_be_allowed(write_wav: Write, tmp_path: Path) -> None:
    write_wav("stereo.wav", channels=2)
    (tmp_path / "t.tsv").write_text("stereo.wav\tYES\n")
    assert main(["data", "check", str(tmp_path / "t.tsv")]) == 1
    assert main(["data", "check", str(tmp_path / "t.tsv"), "--mix-channels"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["data", "check", "nowhere.tsv"], "nowhere.tsv: no such table"),
        (["evaluate", "nowhere"], "nowhere: no such folder"),
        (["transcribe", "nowhere", "a.wav"], "nowhere: no such folder"),
        (["train", "maybe"], "no recipe 'maybe'; known are yesno"),
        (["train", "--seed=3"], "which recipe"),
    ],
)
def test_errors_are_one_line(arguments: list[str], message: str, capsys: Capture) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("sonorant: error: ")
    assert message in error
    assert len(error.splitlines()) == 1


def test_training_parts_from_the_other_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is left of gloo when the interpreter ends can abort the process."""

    def train(config: object, run: Path) -> dict[str, object]:
        store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
        torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        return {}

    monkeypatch.setattr("sonorant.recipes.yesno.train", train)
    assert main(["train", "yesno", "--output", str(tmp_path / "run")]) == 0
    assert not torch.distributed.is_initialized()


def test_evaluating_needs_a_table_where_no_recipe_is_known(
    recognizer: Recognizer,
    tmp_path: Path,
    capsys: Capture,
) -> None:
    recognizer.recipe = None
    recognizer.save(tmp_path / "model")
    assert main(["evaluate", str(tmp_path)]) == 2
    assert "give --data TABLE" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [[], ["data"], ["data", "check"], ["evaluate"], ["transcribe", "x"], ["evaluate", "x", "--nonsense"]]
)
def test_wrong_usage_exits_with_2(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


def test_tables_of_fsdd(fsdd: FsddCorpus, tmp_path: Path, capsys: Capture) -> None:
    assert main(["data", "fsdd", str(tmp_path / "tables"), "--leave-out", "theo"]) == 0
    paths = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert [len(path.read_text().splitlines()) for path in paths] == [2250, 500]
    assert main(["data", "fsdd", str(tmp_path / "tables")]) == 2
    assert "there already" in capsys.readouterr().err
