"""Runs of a table: their folders, and what is finished."""

import json
from functools import cached_property
from pathlib import Path

from mmengine.config import Config

from xmodal.ablation.table import Stage
from xmodal.config_text import ABSENT, changed_values
from xmodal.errors import FileError
from xmodal.evaluation.queries import queries_file
from xmodal.files import read_json, write_json

RECORD = 'ablate.json'  # what a folder was made with, and how long it took
METRICS = 'metrics.json'
UNFINISHED = 'unfinished'  # in the record, from the start of a training to its end
# In the settings: which checkpoint is tested. Older records do not say it.
BEST = 'default_hooks.checkpoint'
# Top-level keys that change nothing a run learns or measures, but for the best checkpoint.
_WITHOUT_EFFECT = ('default_hooks', 'env_cfg', 'log_level', 'log_processor', 'visualizer')


class Run:
    """One stage of a row with one seed, and its folder.

    Args:
        stage: the stage.
        options: what row and table change in its config.
        seed: of the training.
        folder: its work dir.
        source: the run whose checkpoint it starts from, or tests; None for none.
        parts: runs whose scores it averages, in place of a training.

    Attributes:
        results: folder that its record and results are read from: its own, except in a dry run.
    """

    def __init__(
        self,
        stage: Stage,
        options: dict,
        seed: int,
        folder: Path,
        source: 'Run | None',
        parts: 'list[Run]',
    ) -> None:
        self.stage, self.seed, self.folder, self.source = stage, seed, folder, source
        self.parts = parts
        self.options = {**options, 'randomness.seed': seed}
        self.results = folder
        self.is_tested = False  # whether a column needs its metrics
        self.followers: list[Run] = []  # that start from it, or average its scores
        for run in self.needs:
            run.followers.append(self)

    def __str__(self) -> str:
        return f'{self.folder.parent.parent.name}, seed {self.seed}, {self.stage.name}'

    @cached_property
    def config(self) -> Config:
        """The config with all changes, except for the checkpoint that it starts from."""
        return self.stage.merged(self.options)

    def has_options(self, options: dict) -> bool:
        """Whether other options make the same config (:meth:`Stage.are_equal`)."""
        return self.stage.are_equal({**options, 'randomness.seed': self.seed}, self.options)

    @property
    def last_checkpoint(self) -> Path:
        """The checkpoint of the last epoch."""
        return last_checkpoint(self.folder, self.config)

    @property
    def checkpoint(self) -> Path:
        """The checkpoint to continue from: the best one if the config keeps it (``save_best``)."""
        if self.stage.tests_only:
            return self.source.checkpoint
        return best_checkpoint(self.folder, self.config)

    @property
    def needs(self) -> 'list[Run]':
        """The runs that come before it."""
        return self.parts or ([self.source] if self.source else [])

    @property
    def is_ready(self) -> bool:
        """Whether the runs before it are finished."""
        trained = self.source is None or self.source.is_trained
        return trained and all(part.is_done for part in self.parts)

    @property
    def is_trained(self) -> bool:
        """Whether the training is finished, or there is none.

        The checkpoint of the last epoch is there before its validation, which may find the best.
        """
        return not self.stage.trains or (self.last_checkpoint.is_file() and not self.is_begun)

    @property
    def is_begun(self) -> bool:
        """Whether a training has begun that has not come to its end."""
        return self._record().get(UNFINISHED, False)

    @property
    def record_file(self) -> Path:
        """What the folder was made with, and how long it took."""
        return self.results / RECORD

    @property
    def metrics_file(self) -> Path:
        """The metrics of its test."""
        return self.results / METRICS

    @property
    def queries_file(self) -> Path:
        """The results of its test query by query."""
        return queries_file(self.metrics_file)

    @property
    def scores_file(self) -> Path:
        """Where its test writes the scores for an ensemble."""
        return self.folder / 'scores.npz'

    @property
    def saves_scores(self) -> bool:
        """Whether an ensemble averages its scores."""
        return any(self in run.parts for run in self.followers)

    @property
    def lacks_test(self) -> bool:
        """Whether metrics or scores are needed that do not exist yet."""
        is_measured = self.metrics_file.is_file()
        if any(self in run.parts and not run.is_done for run in self.followers):
            return not (is_measured and self.scores_file.is_file())
        return self.is_tested and not is_measured

    @property
    def lacks_training(self) -> bool:
        """Whether the training is unfinished, and its checkpoint is needed.

        Nothing needs the checkpoint of a run that is measured and that no unfinished run starts
        from: it may be deleted, or the results may come from a file.
        """
        is_end = not self.is_tested and not self.followers
        is_needed = is_end or self.lacks_test or any(not run.is_done for run in self.followers)
        return is_needed and not self.is_trained

    @property
    def is_done(self) -> bool:
        """Whether neither training nor test is left."""
        return not self.lacks_training and not self.lacks_test

    def metrics(self) -> dict[str, float] | None:
        """What the test measured; None before it."""
        file = self.metrics_file
        return _read(file, 'delete it to test again') if file.is_file() else None

    def seconds(self) -> dict[str, float]:
        """How long training and test have taken so far, interruptions included."""
        return self._record().get('seconds', {})

    def add_seconds(self, step: str, seconds: float) -> None:
        """Adds to the time of ``step``, 'train' or 'test'."""
        record = self._record()
        times = record.setdefault('seconds', {})
        times[step] = times.get(step, 0.0) + seconds
        write_json(self.record_file, record, indent=1)

    def mark_unfinished(self, is_unfinished: bool) -> None:
        """Records that a training begins, or that it came to its end."""
        record = self._record()
        record.pop(UNFINISHED, None)
        if is_unfinished:
            record[UNFINISHED] = True
        write_json(self.record_file, record, indent=1)

    def check(self) -> None:
        """Refuses a folder that was made with other settings, or that started from such a folder.

        Raises:
            ValueError: names the keys of the configs that differ.
        """
        record, settings = self._record(), self.settings
        if not record and any(self.folder.glob('*.pth')):
            raise ValueError(
                f'{self.folder} holds checkpoints, and no {RECORD} that says what they were made '
                'with: move the folder away'
            )
        if changed := differences(record.get('settings', settings), settings):
            raise ValueError(
                f'{self.folder} was made with other settings:\n  '
                + '\n  '.join(changed[:8])
                + '\nundo the change of the config, or move the folder away to run it again'
            )

    def claim(self) -> None:
        """Records in the folder what it is made with."""
        self.check()
        record = {**self._record(), 'settings': self.settings}
        if self.lacks_training and not any(self.folder.glob('*.pth')):
            record.pop('seconds', None)  # those of a training whose weights are gone
        write_json(self.record_file, record, indent=1)

    @cached_property
    def settings(self) -> dict:
        """What determines the run's outcome, as JSON gives it back."""
        content = self.stage.content(self.options)
        content = {k: v for k, v in content.items() if k not in _WITHOUT_EFFECT}
        keeps = self.config.get('default_hooks', {}).get('checkpoint') or {}
        if keeps.get('save_best'):
            content[BEST] = [keeps.save_best, keeps.get('rule')]
        own = json.loads(json.dumps({'config': self.stage.config, **content}, default=str))
        return own | {f'after {run.stage.name}': run.settings for run in self.needs}

    def _record(self) -> dict:
        file = self.record_file
        return _read(file, f'move {file.parent} away') if file.is_file() else {}


def _read(file: Path, remedy: str) -> dict:
    """A file of a run's folder; one that is damaged is named, with what to do."""
    try:
        return read_json(file)
    except FileError as error:
        raise FileError(f'{error}; {remedy}') from error


def last_checkpoint(folder: Path, config: Config) -> Path:
    """The checkpoint of a training's last epoch."""
    return folder / f'epoch_{config.train_cfg.max_epochs}.pth'


def best_checkpoint(folder: Path, config: Config) -> Path:
    """The best checkpoint of a training if its config keeps it, or else that of the last epoch."""
    # An older one is left where a process was killed while it replaced it.
    best = sorted(folder.glob('best_*.pth'), key=lambda file: file.stat().st_mtime)
    return best[-1] if best else last_checkpoint(folder, config)


def differences(old: dict, new: dict) -> list[str]:
    """Where two settings differ, one line a key."""
    lines = []
    for key, *values in changed_values(old, new):
        before, now = (None if value is ABSENT else value for value in values)
        is_unsaid = values[0] is ABSENT and key.endswith(BEST)
        if before != now and not is_unsaid:
            lines.append(f'{key}: {before!r} there, {now!r} now')
    return lines
