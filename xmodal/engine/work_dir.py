"""Where a run goes on: the checkpoints of its folder, and ``last_checkpoint``, which names one."""

import sys
from pathlib import Path

from xmodal.checkpoint_file import expect_whole, find_damage
from xmodal.errors import ConfigError, FileError
from xmodal.files import atomic_open

POINTER = 'last_checkpoint'


def checkpoints(folder: str | Path) -> list[Path]:
    """The checkpoints of a run, the newest first; those of the best metrics are not among them."""
    found = [path for name in ('epoch_*', 'iter_*') for path in Path(folder).glob(f'{name}.pth')]
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def has_begun(folder: str | Path) -> bool:
    """Whether a run has something to go on from; the files are not opened."""
    return Path(folder, POINTER).is_file() or bool(checkpoints(folder))


def require_other_folder(folder: str | Path, config_file: str | Path) -> None:
    """Refuses a work dir in which the config that a run writes would replace the one it reads.

    Raises:
        ConfigError: when the config is a file in the folder.
    """
    source = Path(config_file)
    if source.suffix == '.py' and source.resolve().parent == Path(folder).resolve():
        raise ConfigError(
            f'{source} is in the work dir, and the config that the run writes there, with all of '
            f'its values, would replace it: give another one, as --work-dir {folder}/run'
        )


def config_and_checkpoint(folder: Path, checkpoint: Path | None = None) -> tuple[Path, Path]:
    """The config of a run, and its latest checkpoint unless another one is given.

    The latest, also where the run keeps a best one (``save_best``).

    Raises:
        FileNotFoundError: when there is no config or no checkpoint.
        FileError: when there are several configs.
    """
    configs = sorted(folder.glob('*.py'))
    checkpoint = checkpoint or latest_checkpoint(folder)
    if not configs or not checkpoint:
        raise FileNotFoundError(
            f'{folder} has no config or no checkpoint: it must be the work_dir of a trained run'
        )
    if len(configs) > 1:
        raise FileError(
            f'{folder} has several configs, {", ".join(file.name for file in configs)}: keep the '
            f'one that {checkpoint.name} was trained with there, and move the others away'
        )
    return configs[0], checkpoint


def set_last_checkpoint(folder: str | Path, checkpoint: str | Path) -> None:
    """Names the checkpoint from which a run resumes, at once or not at all."""
    with atomic_open(Path(folder, POINTER)) as file:
        file.write(str(checkpoint))


def latest_checkpoint(folder: str | Path) -> Path | None:
    """Returns the checkpoint from which a run resumes; its folder may have been moved.

    That is the one that ``last_checkpoint`` names. If there is none of that name, or it is damaged,
    it is the newest that is whole, which is printed.

    Returns:
        A checkpoint, or None if the folder has neither checkpoints nor a ``last_checkpoint``.

    Raises:
        ValueError: if no checkpoint is whole.
    """
    pointer = Path(folder, POINTER)
    candidates, complaints = checkpoints(folder), []
    if pointer.is_file():
        text = pointer.read_bytes().decode(errors='replace').strip()
        named = [path for path in Path(folder).glob('*.pth') if path.name == Path(text).name]
        candidates = named + [path for path in candidates if path not in named]
        if not named:
            complaints.append(f'{POINTER} names {text[:60]!r}, which is not there')
    elif candidates:
        complaints.append(f'there is no {POINTER}')
    for path in candidates:
        if (damage := find_damage(path)) is None:
            if complaints:
                print(
                    f'warning: {folder}: {"; ".join(complaints)}. Taking {path.name}, the newest '
                    'whole checkpoint',
                    file=sys.stderr,
                )
            expect_whole(path)
            return path
        complaints.append(f'{path.name}: {damage}')
    if complaints:
        raise ValueError(
            f'{folder} has no whole checkpoint ({"; ".join(complaints)}): move the folder away to '
            'train anew'
        )
    return None
