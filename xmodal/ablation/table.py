"""A table of a paper, read from its declaration (docs/ablations.md)."""

import runpy
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from mmengine.config import Config, DictAction

VARIANTS = 'variants'  # the folder of the variants' configs, beside the tables' folder


class Stage(NamedTuple):
    """One training of a row, and its test; or the test of several trainings together.

    Attributes:
        name: as columns and other stages call it.
        config: config file.
        takes: keys of a variant's config that are laid over this stage's, with all below them.
        after: the stage whose checkpoint this one begins with, or None.
        options: further changes to the config, by dotted key.
        ensemble: stages whose scores are averaged and evaluated by this config, instead of a
            training; empty for none.
    """

    name: str
    config: str
    takes: tuple[str, ...]
    after: str | None = None
    options: dict = {}
    ensemble: tuple[str, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        """The stages that come before it."""
        return (self.after,) if self.after else self.ensemble


class Column(NamedTuple):
    """A measured figure: one metric of a stage's test, or the mean of several."""

    heading: str
    stage: str
    metrics: tuple[str, ...]


class Row(NamedTuple):
    """A row: which variant each stage takes, and what the paper reports.

    Attributes:
        name: for the command line.
        label: as printed.
        variants: config file of the variant by stage.
        paper: the paper's figures in the order of ``Table.paper_columns``; empty for none.
    """

    name: str
    label: str
    variants: dict[str, Path]
    paper: list[float]


class Table(NamedTuple):
    """A table under one preset.

    Attributes:
        title: what is compared, and where the paper does.
        preset: name of the scale: ``shapes``, ``4m``.
        label: what the measured figures are.
        group: tables of one group and preset share the runs they have in common.
        reference: the variant that others may turn out to be equal to, or None.
        stages: those that the columns need.
        columns: what is measured.
        paper_columns: headings of the paper's figures.
        rows: in the paper's order.
    """

    title: str
    preset: str
    label: str
    group: str
    reference: Path | None
    stages: dict[str, Stage]
    columns: list[Column]
    paper_columns: list[str]
    rows: list[Row]

    def chain(self, stage: str) -> list[Stage]:
        """The stages that lead to one, itself last."""
        found = self.stages[stage]
        return [*(self.chain(found.after) if found.after else []), found]


def read_table(file: str | Path, preset: str | None = None, only: list[str] | None = None) -> Table:
    """Reads a declaration.

    Args:
        file: a config file with ``title``, ``group``, ``presets``, ``columns``, ``paper_columns``
            and ``rows``.
        preset: one of its presets; None for the first that it has columns for.
        only: names of rows; None for all.

    Raises:
        ValueError: when a name in it leads nowhere, with the names there are.
        FileNotFoundError: when a config is not there.
    """
    file = Path(file)
    content = Config.fromfile(file).to_dict()
    for key in ('title', 'group', 'presets', 'columns', 'paper_columns', 'rows'):
        if key not in content:
            raise ValueError(f"{file} has no '{key}': it is no declaration of a table")
    for name in content['columns']:
        _check(f'{file}: preset of columns', name, content['presets'])
    # Presets are shared by the tables of a paper, and a table may have columns for some.
    known = [name for name in content['presets'] if name in content['columns']]
    preset = preset or next(iter(known), None)
    _check(f'{file}: preset', preset, known)
    settings = content['presets'][preset]

    stages = {name: _stage(file, name, **given) for name, given in settings['stages'].items()}
    for stage in stages.values():
        for name in stage.needs:
            _check(f'{file}: stage that {stage.name} needs,', name, stages)
    columns = [
        _column(file, heading, stages, *given)
        for heading, given in content['columns'][preset].items()
    ]
    needed, waiting = set(), [column.stage for column in columns]
    while waiting:
        name = waiting.pop()
        needed.add(name)
        waiting += stages[name].needs
    stages = {name: stage for name, stage in stages.items() if name in needed}
    for stage in stages.values():
        if not Path(stage.config).is_file():
            raise FileNotFoundError(
                f'{file}: stage {stage.name} names {stage.config}, which is not there'
            )

    for name in only or ():
        _check(f'{file}: row', name, content['rows'])
    folder = file.parent.parent / VARIANTS
    rows = [
        _row(file, name, folder, stages, content['paper_columns'], **given)
        for name, given in content['rows'].items()
        if not only or name in only
    ]
    reference = content.get('reference')
    return Table(
        content['title'],
        preset,
        settings['label'],
        content['group'],
        folder / f'{reference}.py' if reference else None,
        stages,
        columns,
        content['paper_columns'],
        rows,
    )


def read_variant(file: Path) -> dict[str, object]:
    """What a variant's config changes in the one it inherits from, by dotted key.

    ``_delete_`` stays a key, so that the same changes can be laid over another config.
    """
    if not file.is_file():
        found = ', '.join(sorted(path.stem for path in file.parent.glob('*.py')))
        raise FileNotFoundError(f'variant {file} is not there; there are: {found}')
    own = {
        key: value
        for key, value in runpy.run_path(str(file)).items()
        if not key.startswith('_') and not isinstance(value, ModuleType)
    }
    return _options(file, own)


def _stage(
    file: Path,
    name: str,
    config: str,
    takes: list[str],
    after: str | None = None,
    options: dict | None = None,
    ensemble: list[str] = (),
) -> Stage:
    options = _options(file, options or {})
    return Stage(name, config, tuple(takes), after, options, tuple(ensemble))


def _column(
    file: Path, heading: str, stages: dict[str, Stage], stage: str, metrics: str | list[str]
) -> Column:
    _check(f"{file}: stage of column '{heading}'", stage, stages)
    return Column(heading, stage, (metrics,) if isinstance(metrics, str) else tuple(metrics))


def _row(
    file: Path,
    name: str,
    folder: Path,
    stages: dict[str, Stage],
    paper_columns: list[str],
    label: str | None = None,
    variant: str | dict | None = None,
    paper: list | None = None,
) -> Row:
    if paper and len(paper) != len(paper_columns):
        raise ValueError(
            f"{file}: row '{name}' has {len(paper)} of the paper's figures, and there are "
            f'{len(paper_columns)} paper_columns'
        )
    variant = variant or name
    chosen = variant if isinstance(variant, dict) else dict.fromkeys(stages, variant)
    for stage in stages:
        _check(f"{file}: variant of row '{name}' for stage", stage, chosen)
    variants = {stage: folder / f'{chosen[stage]}.py' for stage in stages}
    for path in set(variants.values()):
        for key in read_variant(path):
            if not any(_below(key, stage.takes) for stage in stages.values()):
                raise ValueError(f'{path} sets {key}, which no stage of {file} takes')
    return Row(name, label or name, variants, paper or [])


def _below(key: str, prefixes: tuple[str, ...]) -> bool:
    return any(key == prefix or key.startswith(f'{prefix}.') for prefix in prefixes)


def stage_options(stage: Stage, variant: Path) -> dict[str, object]:
    """What a variant and the table change in the config of a stage."""
    taken = {k: v for k, v in read_variant(variant).items() if _below(k, stage.takes)}
    return taken | stage.options


def _options(file: Path, nested: dict) -> dict[str, object]:
    """By dotted key; only what ``--cfg-options`` can say."""
    options = dict(_flatten(nested))
    for key, value in options.items():
        if DictAction._parse_iterable(str(value)) != value:
            raise ValueError(f'{file}: {key}={value!r} has no form on a command line')
    return options


def _flatten(value: dict, prefix: str = ''):
    for key, item in value.items():
        if isinstance(item, dict):
            yield from _flatten(item, f'{prefix}{key}.')
        else:
            yield f'{prefix}{key}', item


def _check(what: str, name: str, known) -> None:
    if name not in known:
        raise ValueError(f"{what} '{name}' is unknown, expected one of {', '.join(known)}")
