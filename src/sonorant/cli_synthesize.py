"""The verb ``synthesize``."""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sonorant.inference import Sentence, Speech, Synthesizer

__all__ = ["add_synthesize"]

_AT_ONCE = 64
_SOUND_FILES = {".wav", ".flac", ".ogg"}


class _Job(NamedTuple):
    """A text as it was given: where, which file shall be made of it, and its speaker and accent, if any."""

    source: str
    path: Path
    text: str
    speaker: str | None = None
    accent: str | None = None


def add_synthesize(synthesize: argparse.ArgumentParser) -> None:
    """Give the verb its arguments."""
    synthesize.description = (
        "Speak texts: path<TAB>seconds lines. A text goes into one file (-o OUT.wav). Of many, from standard input or "
        "a table, each goes into a file of its own in a folder (-o FOLDER); those that cannot be spoken are listed on "
        "standard error, and the exit status is then 2. Files that are there already are not overwritten."
    )
    synthesize.add_argument("model", type=Path, metavar="DIR", help="a run directory or a model folder")
    texts = synthesize.add_mutually_exclusive_group()
    texts.add_argument(
        "--text",
        metavar="TEXT",
        help="what to say; - reads standard input (default, if that is no terminal): one text where OUT is a file, "
        "else text[<TAB>speaker[<TAB>accent]] lines, of which each becomes NNN.wav after its number",
    )
    texts.add_argument("--data", type=Path, metavar="TABLE", help="a corpus; files are named after its recordings")
    texts.add_argument("--list", action="store_true", help="print the speakers, each with its own accent, and stop")
    synthesize.add_argument("-o", "--output", type=Path, metavar="OUT", help="a file (.wav, .flac, .ogg) or a folder")
    synthesize.add_argument("--speaker", metavar="S", help="whose voice, whatever the lines or the table say")
    synthesize.add_argument("--accent", metavar="A", help="(default: the speaker's own)")
    for name, what in (("duration", "rhythm"), ("f0", "melody"), ("energy", "stress")):
        synthesize.add_argument(f"--{name}-speaker", metavar="S", help=f"whose {what} (default: the speaker's own)")
    synthesize.add_argument("--pace", type=float, default=1.0, metavar="X", help="2 is twice as fast (default: 1)")
    synthesize.add_argument("--pitch-shift", type=float, default=0.0, metavar="X", help="in semitones (default: 0)")
    synthesize.add_argument(
        "--temperature", type=float, metavar="X", help="0 is always the same (default: the model's own)"
    )
    synthesize.add_argument("--seed", type=int, default=0, metavar="N", help="another is another take (default: 0)")
    synthesize.add_argument("--batch-size", type=int, default=16, metavar="N", help="passages at once (default: 16)")
    synthesize.add_argument("--json", action="store_true", help="a JSON line each: what is spoken, and when")
    synthesize.set_defaults(run=_synthesize)


def _synthesize(options: argparse.Namespace, rest: list[str]) -> int:
    from sonorant.inference import Synthesizer, load

    synthesizer = load(options.model)
    if not isinstance(synthesizer, Synthesizer):
        raise ValueError(f"{options.model}: a model of kind {synthesizer.KIND!r}, which does not speak")
    if options.list:
        print("".join(f"{name}\t{accent}\n" for name, accent in synthesizer.speaker_accents.items()), end="")
        return 0
    if options.output is None:
        raise ValueError("where to? Give -o OUT.wav, or -o FOLDER for many texts")
    synthesizer.check_predictors()
    jobs, failed = _jobs(options)
    one_file = options.output.suffix.lower() in _SOUND_FILES
    (options.output.parent if one_file else options.output).mkdir(parents=True, exist_ok=True)
    for job, sentence, speech in _spoken(synthesizer, jobs, options):
        if speech is None:
            failed = True
            continue
        speech.write(job.path)
        _print(synthesizer, job, sentence, speech, as_json=options.json)
    return 2 if failed else 0


def _jobs(options: argparse.Namespace) -> tuple[list[_Job], bool]:
    """What is to be said, and whether something of it cannot be read."""
    is_file = options.output.suffix.lower() in _SOUND_FILES
    if options.data is not None:
        if is_file:
            raise ValueError(f"{options.output}: a table becomes a folder of files")
        return _table(options.data, options.output)
    from_stdin = options.text == "-" or (options.text is None and not sys.stdin.isatty())
    if not from_stdin and options.text is None:
        raise ValueError("what shall be said? Give --text TEXT, --data TABLE, or a text on standard input")
    if is_file:
        return [_Job("", options.output, sys.stdin.read() if from_stdin else options.text)], False
    if not from_stdin:
        return [_Job("", options.output / "001.wav", options.text)], False
    return _lines(options.output)


def _table(table: Path, folder: Path) -> tuple[list[_Job], bool]:
    from sonorant.data.corpus import scan_corpus
    from sonorant.inference.transcript import TextGridNames

    corpus, names = scan_corpus(table), TextGridNames(folder, "wav")
    for fault in corpus.faults:
        print(f"sonorant: error: {fault}", file=sys.stderr)
    jobs = [_Job(u.source, names.path(u.id), u.text, u.speaker, u.accent) for u in corpus.utterances]
    return jobs, bool(corpus.faults)


def _lines(folder: Path) -> tuple[list[_Job], bool]:
    jobs: list[_Job] = []
    failed = False
    for number, line in enumerate(sys.stdin, start=1):
        source, line = f"line {number}", line.strip(" \r\n")
        text, *fields = re.split(r" *\t *", line)
        if len(fields) > 2:
            print(f"sonorant: error: {source}: expected text[<TAB>speaker[<TAB>accent]]; got {line!r}", file=sys.stderr)
            failed = True
        elif line:
            speaker, accent = [*fields, "", ""][:2]
            jobs.append(_Job(source, folder / f"{number:03}.wav", text, speaker or None, accent or None))
    if not jobs and not failed:
        raise ValueError("standard input: holds no text")
    return jobs, failed


def _sentence(job: _Job, options: argparse.Namespace) -> "Sentence":
    from sonorant.inference import Sentence

    return Sentence(
        job.text,
        options.speaker or job.speaker,
        # another's voice does not come with the accent of the one whom the table names
        options.accent or (None if options.speaker else job.accent),
        options.duration_speaker,
        options.f0_speaker,
        options.energy_speaker,
        options.pace,
        options.pitch_shift,
        options.temperature,
        options.seed,
    )


def _spoken(
    synthesizer: "Synthesizer", jobs: Sequence[_Job], options: argparse.Namespace
) -> Iterator[tuple[_Job, "Sentence", "Speech | None"]]:
    """Every text with its speech; or None, and on stderr why: one that cannot be spoken does not stop the others."""
    from sonorant.progress import progress_bar

    with progress_bar("speaking", len(jobs)) as progress:
        for start in range(0, len(jobs), _AT_ONCE):
            some = [(job, _sentence(job, options)) for job in jobs[start : start + _AT_ONCE]]
            errors = [_error(synthesizer, *pair) for pair in some]
            for (job, _), error in zip(some, errors, strict=True):
                if error is not None:
                    print(f"sonorant: error: {job.source + ': ' if job.source else ''}{error}", file=sys.stderr)
            good = [sentence for (_, sentence), error in zip(some, errors, strict=True) if error is None]
            speeches = iter(synthesizer.synthesize_all(good, batch_size=options.batch_size))
            for (job, sentence), error in zip(some, errors, strict=True):
                yield job, sentence, next(speeches) if error is None else None
            progress(start + len(some))


def _error(synthesizer: "Synthesizer", job: _Job, sentence: "Sentence") -> str | None:
    if job.path.exists():
        return f"{job.path} is there already"
    try:
        synthesizer.prepare(sentence)
    except ValueError as error:
        return str(error)
    return None


def _print(synthesizer: "Synthesizer", job: _Job, sentence: "Sentence", speech: "Speech", *, as_json: bool) -> None:
    if not as_json:
        print(f"{job.path}\t{speech.duration:.2f}", flush=True)
        return
    speaker = sentence.speaker or synthesizer.speakers[0]
    accent = sentence.accent or synthesizer.speaker_accents[speaker]
    data = {"path": str(job.path), "text": job.text, "speaker": speaker, "accent": accent, **speech.to_json()}
    print(json.dumps(data, ensure_ascii=False), flush=True)
