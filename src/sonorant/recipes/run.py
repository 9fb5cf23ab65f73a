"""From command line arguments to a configuration and a run directory."""

import argparse
import os
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonargparse
import torch

__all__ = ["leave_processes", "prepare_run"]

CONFIG = "config.yaml"


def prepare_run(recipe: ModuleType, name: str, arguments: list[str]) -> tuple[Any, Path]:
    """Parse the settings of a recipe, and make the run directory with the resolved ``config.yaml``.

    Settings come from the recipe, then from ``--preset``, then from ``--config``, then from the other arguments. With
    ``--resume`` they are those of the run's own ``config.yaml``.

    Returns:
        The recipe's ``Config`` and the run directory.

    Raises:
        ValueError: the directory holds a run already and ``--resume`` was not given; ``--resume`` with other settings.
        FileNotFoundError: ``--resume`` of a directory that holds no run.
    """
    parser = _parser(recipe, name)
    _apply_preset(parser, recipe, arguments)
    resumed = _resumed_run(arguments)
    if resumed is not None:
        recorded = resumed / CONFIG
        if not recorded.is_file():
            raise FileNotFoundError(f"{recorded}: no such file; there is no run to resume")
        others = {argument.partition("=")[0] for argument in arguments if argument.startswith("--")}
        if others - {"--output", "--resume"}:
            raise ValueError(f"--resume takes every setting from {recorded}; leave out the others")
        arguments = [f"--config={recorded}", *arguments]
    options = parser.parse_args(arguments)
    run = Path(options.output)
    recorded = run / CONFIG
    is_first = _is_first_process()
    if resumed is None and is_first and _has_results(run):
        raise ValueError(f"{run}: holds a run already; go on with --resume, or choose another --output")
    settings = parser.instantiate(options)
    config = recipe.Config(**{field.name: settings[field.name] for field in fields(recipe.Config)})
    if is_first and not options.resume:
        run.mkdir(parents=True, exist_ok=True)
        for name in ("output", "resume", "config", "preset"):
            options.pop(name, None)
        recorded.write_text(parser.dump(options, skip_validation=True), encoding="utf-8")
    return config, run


def leave_processes() -> None:
    """Part from the other processes of a run on several devices, if there are any; at its end.

    Lightning leaves gloo's threads to the end of the interpreter, which aborts a process when it comes upon them.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def _has_results(run: Path) -> bool:
    """A run that failed before its first checkpoint left nothing that could be lost: the same command starts anew."""
    places = [run, *(run / "members").glob("*"), *(run / "stages").glob("*")]
    return (run / "model").exists() or any(any((place / "checkpoints").glob("*")) for place in places)


def _resumed_run(arguments: list[str]) -> Path | None:
    """The directory of a run to resume: looked for first, for the settings that a recipe must have are in there."""
    known = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    known.add_argument("--output", type=Path)
    known.add_argument("--resume", action="store_true")
    options, _ = known.parse_known_args(arguments)
    return options.output if options.resume else None


def _apply_preset(parser: jsonargparse.ArgumentParser, recipe: ModuleType, arguments: list[str]) -> None:
    """Make the settings of the chosen preset, if any, the parser's defaults."""
    presets = getattr(recipe, "PRESETS", {})
    if not presets:
        return
    known = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    known.add_argument("--preset", choices=list(presets))
    chosen = known.parse_known_args(arguments)[0].preset
    if chosen is not None:
        parser.set_defaults(dict(presets[chosen]))


def _is_first_process() -> bool:
    """False in the other processes of a run on several devices, which are given the same command."""
    ranks = ("RANK", "LOCAL_RANK", "NODE_RANK", "SLURM_PROCID")
    return all(os.environ.get(rank, "0") == "0" for rank in ranks)


def _parser(recipe: ModuleType, name: str) -> jsonargparse.ArgumentParser:
    parser = jsonargparse.ArgumentParser(prog=f"sonorant train {name}", description=recipe.__doc__)
    parser.add_argument("--output", type=str, required=True, metavar="DIR", help="the run directory")
    parser.add_argument("--resume", action="store_true", help="go on with the run in DIR, with its own settings")
    presets = getattr(recipe, "PRESETS", {})
    if presets:
        parser.add_argument("--preset", choices=list(presets), help="settings that go together")
    parser.add_argument("--config", action="config", metavar="FILE", help="settings from a YAML file")
    parser.add_class_arguments(recipe.Config)
    return parser
