"""The parts of a table: stages, columns and rows (docs/ablations.md)."""

import copy
from functools import cache
from typing import NamedTuple

from mmengine.config import Config

from xmodal.engine.launch import read_config

_OF_TRAINING = ('train_', 'val_', 'optim_wrapper', 'param_scheduler')  # how their keys begin


class Override(NamedTuple):
    """Changes to the configs of stages.

    Attributes:
        name: the row that declares them; runs are stored under it.
        changes: values by dotted key. ``_delete_`` stays a key, so that the same changes can be
            merged into the config of every stage.
    """

    name: str
    changes: dict[str, object]


class Stage(NamedTuple):
    """One training of a row and its test, or another test of such a training, or of several.

    Attributes:
        name: as columns and other stages call it.
        config: config file.
        takes: keys of a row's override that are merged into this stage's config, with all keys
            below them.
        after: the stage whose checkpoint this one starts from, or tests; None for none.
        options: further changes to the config, by dotted key.
        ensemble: stages whose scores are averaged and evaluated by this config, instead of a
            training; empty for none.
        tests_only: whether it only tests the checkpoint of ``after``, instead of a training.
    """

    name: str
    config: str
    takes: tuple[str, ...]
    after: str | None = None
    options: dict = {}
    ensemble: tuple[str, ...] = ()
    tests_only: bool = False

    @property
    def trains(self) -> bool:
        """Whether it has a training."""
        return not (self.ensemble or self.tests_only)

    @property
    def needs(self) -> tuple[str, ...]:
        """The stages that come before it."""
        return (self.after,) if self.after else self.ensemble

    def takes_key(self, key: str) -> bool:
        """Whether a change of ``key`` reaches the config of this stage."""
        return any(key == prefix or key.startswith(f'{prefix}.') for prefix in self.takes)

    def taken(self, override: Override) -> dict[str, object]:
        """The changes of an override that reach the config of this stage."""
        return {key: value for key, value in override.changes.items() if self.takes_key(key)}

    def options_with(self, override: Override) -> dict[str, object]:
        """What an override and the table change in the config of this stage.

        A test has what its training has, for their models must be equal; but its config may have no
        training, or another one.
        """
        options = self.taken(override) | self.options
        if not self.tests_only:
            return options
        return {
            key: value
            for key, value in options.items()
            if not key.startswith(_OF_TRAINING) or _has_section(self.merged({}), key)
        }

    def merged(self, options: dict[str, object]) -> Config:
        """The config with options merged into it as tools/train.py does. Not to be changed."""
        variants, key = _variants(self.config), repr(options)
        if key not in variants:  # a tournament asks for each many times
            config = copy.copy(variants[repr({})])  # merging copies the parts that it changes
            config.merge_from_dict(dict(options))
            variants[key] = config
        return variants[key]

    def content(self, options: dict[str, object]) -> dict:
        """What is in the config with options merged into it. Not to be changed."""
        return _content(self.merged(options))

    def are_equal(self, one: dict[str, object], other: dict[str, object]) -> bool:
        """Whether options make the same config: a default may be given or left out."""
        return one == other or self.content(one) == self.content(other)


class Column(NamedTuple):
    """A measured figure: one metric of a stage's test, or the mean of several."""

    heading: str
    stage: str
    metrics: tuple[str, ...]


class Row(NamedTuple):
    """A row: what it changes in the config of each stage, and what the paper reports.

    Attributes:
        name: for the command line and the folders of its runs.
        label: as printed.
        overrides: by stage.
        paper: the paper's figures in the order of ``Table.paper_columns``; empty for none.
    """

    name: str
    label: str
    overrides: dict[str, Override]
    paper: list[float]

    def options(self, stage: Stage) -> dict[str, object]:
        """What the row and the table change in the config of a stage."""
        return stage.options_with(self.overrides[stage.name])

    def config(self, stage: Stage) -> Config:
        """The config of a stage with all changes. Not to be changed further."""
        return stage.merged(self.options(stage))


class Table(NamedTuple):
    """A table under one preset.

    Attributes:
        title: what is compared, and where the paper does.
        preset: name of the scale: ``shapes``, ``4m``.
        label: what the measured figures are.
        gpus: how many the paper has; 0 where a CPU is enough.
        group: tables of one group and preset share the runs they have in common.
        reference: the paper's method; rows whose configs equal its configs share its runs. None
            for none.
        stages: those that the columns need.
        columns: what is measured.
        paper_columns: headings of the paper's figures.
        rows: in the paper's order.
    """

    title: str
    preset: str
    label: str
    gpus: int
    group: str
    reference: Row | None
    stages: dict[str, Stage]
    columns: list[Column]
    paper_columns: list[str]
    rows: list[Row]

    def part(self, rows: list[Row], columns: list[Column]) -> 'Table':
        """The table with these rows and columns, and the stages that they need."""
        stages = needed_stages(self.stages, columns)
        return self._replace(rows=rows, columns=columns, stages=stages)

    def chain(self, stage: str) -> list[Stage]:
        """The stages that lead to a stage, which comes last."""
        last = self.stages[stage]
        return [*(self.chain(last.after) if last.after else []), last]


def needed_stages(stages: dict[str, Stage], columns: list[Column]) -> dict[str, Stage]:
    """The stages of columns, and those that these need, in their order."""
    needed, waiting = set(), [column.stage for column in columns]
    while waiting:
        name = waiting.pop()
        needed.add(name)
        waiting += stages[name].needs
    return {name: stage for name, stage in stages.items() if name in needed}


def _has_section(config: Config, key: str) -> bool:
    """Whether a config has the dict or the list whose item a dotted key is."""
    section = config
    for name in key.split('.')[:-1]:
        if isinstance(section, list):
            section = {str(index): item for index, item in enumerate(section)}
        section = section.get(name) if isinstance(section, dict | Config) else None
    return section is not None


@cache
def _variants(file: str) -> dict[str, Config]:
    """A config without changes, and with those that were asked for before, by their text."""
    return {repr({}): read_config(file)}


@cache
def _content(config: Config) -> dict:
    """A merged config as a dict, of which a tournament asks for each many times, too."""
    return config.to_dict()
