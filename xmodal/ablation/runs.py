"""From a table to trainings: their folders, what is finished, and what they share."""

import copy
import json
from functools import cache, cached_property
from itertools import groupby
from pathlib import Path

from mmengine.config import Config

from xmodal.ablation.table import Row, Stage, Table, stage_options
from xmodal.engine.launch import read_config
from xmodal.files import write_json

RECORD = 'ablate.json'  # what a folder was made with, and how long it took
# Top-level keys that change nothing a run learns or measures.
_INDIFFERENT = ('default_hooks', 'env_cfg', 'log_level', 'log_processor', 'visualizer')


class Run:
    """One stage of a row with one seed, and its folder.

    Args:
        stage: the stage.
        options: what variant and table change in its config.
        seed: of the training.
        folder: its work dir.
        source: the run whose checkpoint it begins with, or None.
        parts: runs whose scores it averages, in place of a training.
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
        self.is_tested = False  # whether a column needs its metrics
        self.saves_scores = False  # whether an ensemble needs its scores
        for part in parts:
            part.saves_scores = True

    def __str__(self) -> str:
        variant = self.folder.parent.parent.name
        return f'{variant}, seed {self.seed}, {self.stage.name}'

    @cached_property
    def config(self) -> Config:
        """The config with everything laid over it, but for the checkpoint it begins with."""
        return merged(self.stage, self.options)

    @property
    def last_checkpoint(self) -> Path:
        """The checkpoint that a whole training ends with."""
        return self.folder / f'epoch_{self.config.train_cfg.max_epochs}.pth'

    @property
    def checkpoint(self) -> Path:
        """The one to go on with: the best where the config keeps it (``save_best``)."""
        return next(iter(sorted(self.folder.glob('best_*.pth'))), self.last_checkpoint)

    @property
    def needs(self) -> 'list[Run]':
        """The runs that come before it."""
        return self.parts or ([self.source] if self.source else [])

    @property
    def is_ready(self) -> bool:
        """Whether what it needs is there."""
        trained = self.source is None or self.source.is_trained
        return trained and all(part.is_done for part in self.parts)

    @property
    def is_trained(self) -> bool:
        """Whether the training came to its end; an ensemble has none."""
        return bool(self.parts) or self.last_checkpoint.is_file()

    @property
    def metrics_file(self) -> Path:
        """Where its test leaves the metrics."""
        return self.folder / 'metrics.json'

    @property
    def scores_file(self) -> Path:
        """Where its test leaves the scores for an ensemble."""
        return self.folder / 'scores.npz'

    @property
    def lacks_test(self) -> bool:
        """Whether figures or scores are wanted that are not there."""
        found = self.metrics_file.is_file()
        wanted = self.is_tested and not found
        return wanted or self.saves_scores and not (found and self.scores_file.is_file())

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return self.is_trained and not self.lacks_test

    def metrics(self) -> dict[str, float] | None:
        """What the test measured; None before."""
        return json.loads(self.metrics_file.read_text()) if self.metrics_file.is_file() else None

    def seconds(self) -> dict[str, float]:
        """How long training and test have taken so far, over all sittings."""
        return self._record().get('seconds', {})

    def add_seconds(self, step: str, seconds: float) -> None:
        """Adds to the time of ``step``, 'train' or 'test'."""
        record = self._record()
        times = record.setdefault('seconds', {})
        times[step] = times.get(step, 0.0) + seconds
        write_json(self.folder / RECORD, record, indent=1)

    def check(self) -> None:
        """Refuses a folder that was made with other settings, or began with such a folder's.

        Raises:
            ValueError: names the keys of the configs that differ.
        """
        if not self._record() and any(self.folder.glob('*.pth')):
            raise ValueError(
                f'{self.folder} holds checkpoints, and no {RECORD} that says what they were made '
                'with: move the folder away'
            )
        settings = self._settings()
        if changed := differences(self._record().get('settings', settings), settings):
            raise ValueError(
                f'{self.folder} was made with other settings:\n  '
                + '\n  '.join(changed[:8])
                + '\nundo the change of the config, or move the folder away to run it anew'
            )

    def claim(self) -> None:
        """Notes in the folder what it is made with."""
        self.check()
        record = {**self._record(), 'settings': self._settings()}
        write_json(self.folder / RECORD, record, indent=1)

    def _settings(self) -> dict:
        """What decides over the run's outcome, as JSON gives it back."""
        content = {k: v for k, v in self.config.to_dict().items() if k not in _INDIFFERENT}
        before = {f'after {run.stage.name}': run._settings() for run in self.needs}
        own = {'config': self.stage.config, **content, **before}
        return json.loads(json.dumps(own, default=str))

    def _record(self) -> dict:
        file = self.folder / RECORD
        return json.loads(file.read_text()) if file.is_file() else {}


class Plan:
    """All runs of a table.

    Rows that come to the same configs share their runs, and so do the tables of a group.

    Args:
        table: the table.
        seeds: number of seeds, 0, 1, ….
        root: folder of all tables' runs.

    Attributes:
        runs: in the order of work: all rows with the first seed, then with the next.
    """

    def __init__(self, table: Table, seeds: int, root: Path) -> None:
        self.table, self.seeds = table, seeds
        self.root = Path(root, f'{table.group}_{table.preset}')
        self._by_folder: dict[Path, Run] = {}
        self._of_row: dict[tuple[str, str, int], Run] = {}
        for seed in range(seeds):
            for row in table.rows:
                for stage in table.stages.values():
                    self._of_row[row.name, stage.name, seed] = self._run(row, stage, seed)
        for column in table.columns:
            for row in table.rows:
                for seed in range(seeds):
                    self.run_of(row, column.stage, seed).is_tested = True

    @property
    def runs(self) -> list[Run]:
        """Each run once."""
        return list(self._by_folder.values())

    def run_of(self, row: Row, stage: str, seed: int) -> Run:
        """The run of a stage of a row."""
        return self._of_row[row.name, stage, seed]

    def _run(self, row: Row, stage: Stage, seed: int) -> Run:
        stages = self.table.stages
        source = self._run(row, stages[stage.after], seed) if stage.after else None
        parts = [self._run(row, stages[name], seed) for name in stage.ensemble]
        names = [self._variant(row, step).stem for step in self.table.chain(stage.name)]
        cell = '-to-'.join(name for name, _ in groupby(names))
        folder = self.root / cell / f'seed_{seed}' / stage.name
        if folder not in self._by_folder:
            options = stage_options(stage, row.variants[stage.name])
            self._by_folder[folder] = Run(stage, options, seed, folder, source, parts)
        return self._by_folder[folder]

    def _variant(self, row: Row, stage: Stage) -> Path:
        """The row's variant, or the reference where their configs are equal in the whole chain."""
        reference, own = self.table.reference, row.variants[stage.name]
        if reference is None or own == reference:
            return own
        for step in self.table.chain(stage.name):
            found, expected = (
                merged(step, stage_options(step, variant)).to_dict() for variant in (own, reference)
            )
            if found != expected:
                return own
        return reference


def merged(stage: Stage, options: dict) -> Config:
    """A stage's config with options laid over it, as tools/train.py lays them."""
    config = copy.deepcopy(_read_config(stage.config))
    config.merge_from_dict(dict(options))
    return config


@cache
def _read_config(file: str) -> Config:
    return read_config(file)


def differences(old: object, new: object, key: str = '') -> list[str]:
    """Where two JSON values differ, one line a key."""
    if old == new:
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            line
            for name in sorted(old.keys() | new.keys())
            for line in differences(old.get(name), new.get(name), f'{key}.{name}'.lstrip('.'))
        ]
    return [f'{key}: {old!r} there, {new!r} now']
