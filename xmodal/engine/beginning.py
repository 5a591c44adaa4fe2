"""What a training begins from."""

from pathlib import Path

from mmengine.config import Config

from xmodal.checkpoint_file import require_checkpoint
from xmodal.engine.work_dir import latest_checkpoint, require_other_folder
from xmodal.errors import ConfigError


def check_row_source(config: Config, row: str) -> None:
    """Refuses a stage of a row whose checkpoint to start from is missing.

    Raises:
        ConfigError: names the checkpoint, and how to get it.
    """
    if config.get('resume') or not config.get('load_from') or Path(config.load_from).is_file():
        return
    table, name, *_ = row.split(':')
    stage = Path(config.load_from).parent.name
    raise ConfigError(
        f'{row} starts from {config.load_from}, which does not exist: train stage {stage} first '
        f'(--row {table}:{name}:{stage}), give another checkpoint by --cfg-options load_from=FILE, '
        f'or train all stages by xmodal ablate {table} --only {name}'
    )


def set_beginning(config: Config, resume: str | None) -> None:
    """Sets the checkpoint that a run starts from, if any; never overwrites another run.

    Raises:
        ConfigError: says how to resume, and how to start a new run; or when the config would be
            replaced (:func:`require_other_folder`).
        FileNotFoundError: if the checkpoint to resume is missing.
        ValueError: if no checkpoint of the run is whole.
    """
    work_dir = Path(config.work_dir)
    if config.get('resume') and not resume:
        resume = config.get('load_from') or 'auto'
    existing = sorted(work_dir.glob('*.pth'))
    checkpoint = latest_checkpoint(work_dir) if resume == 'auto' else resume
    if checkpoint:
        require_checkpoint(checkpoint)
        config.resume, config.load_from = True, str(checkpoint)
    if existing and not checkpoint:
        advice = ': add --resume to continue it, or give another --work-dir'
        if resume:  # from a best checkpoint alone, which has no optimizer
            advice = (
                ' and nothing to resume from: give another --work-dir, and to start from '
                f'these weights --cfg-options load_from={existing[-1]}'
            )
        raise ConfigError(f'{work_dir} holds an earlier run ({existing[-1].name}){advice}')
    if not checkpoint:  # a run that is resumed may read the config that it has written
        require_other_folder(work_dir, config.filename or '')
    if existing and Path(checkpoint).parent.resolve() != work_dir.resolve():
        raise ConfigError(
            f'{work_dir} holds another run ({existing[-1].name}) than {checkpoint}: give a new '
            '--work-dir to continue from there'
        )
