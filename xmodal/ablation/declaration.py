"""Reads a table from its declaration, a config file (docs/ablations.md)."""

from collections.abc import Iterable
from pathlib import Path

from xmodal.ablation.table import Column, Override, Row, Stage, Table, needed_stages
from xmodal.engine.command_line import read_value, write_value
from xmodal.engine.sources import read_sources
from xmodal.errors import ConfigError, no_key
from xmodal.packaged import ROOT, find_file

_TABLE_KEYS = ('title', 'group', 'presets', 'columns', 'paper_columns', 'rows')
_STAGE_KEYS = ('config', 'takes', 'after', 'options', 'ensemble')
_ENSEMBLE_KEYS = ('config', 'takes', 'ensemble')  # tools/analysis/ensemble.py takes no options
_TEST_KEYS = ('tests', 'config', 'options')
_ROW_KEYS = ('label', 'override', 'stages', 'paper', 'preset')


def find_table(name: str) -> Path:
    """The file of a table, given as PAPER/TABLE or by its path.

    Raises:
        ConfigError: when there is none, with the tables there are.
    """
    if Path(name).is_file():
        return Path(name)
    paper, _, table = name.partition('/')
    file = find_file(f'configs/{paper}/ablations/{table}.py')
    if table and file.is_file():
        return file
    tables = (ROOT / 'configs').glob('[!_]*/ablations/*.py')
    known = ', '.join(sorted(f'{path.parts[-3]}/{path.stem}' for path in tables))
    raise ConfigError(f"no table '{name}'; there are {known}")


def read_table(file: str | Path, preset: str | None = None, only: list[str] | None = None) -> Table:
    """Reads a declaration.

    Args:
        file: a config file with ``title``, ``group``, ``presets``, ``columns``, ``paper_columns``
            and ``rows``.
        preset: one of its presets; None for the first that it has columns for.
        only: names of rows; None for all.

    Raises:
        ValueError: when a name in it is unknown, with the known ones.
        FileNotFoundError: when a config does not exist.
    """
    file = Path(file)
    content = read_sources(str(file)).to_dict()
    for key in _TABLE_KEYS:
        if key not in content:
            raise ValueError(f"{file} has no '{key}': it does not declare a table")
    presets, rows = content['presets'], content['rows']
    for name in content['columns']:
        _check_name(f'{file}: preset of columns', name, presets)
    # Presets are shared by the tables of a paper, and a table may have columns for some.
    known = [name for name in presets if name in content['columns']]
    preset = preset or next(iter(known), None)
    _check_name(f'{file}: preset', preset, known)

    all_stages = {
        name
        for settings in presets.values()
        for name, declared in settings['stages'].items()
        if 'tests' not in declared  # a test has what its training has
    }
    stages, columns = _read_stages(file, presets[preset], content['columns'][preset])
    paper_columns = _of_preset(content['paper_columns'], preset)
    shown = _rows_of(file, preset, rows, known)
    for name in only or ():
        _check_name(f'{file}: row', name, shown)
    method = content.get('reference')
    overrides = {
        name: _read_overrides(file, name, rows, all_stages, stages)
        for name in rows
        if name in shown or name == method
    }
    reference = None
    if method:
        # Without a row of this name the method is the stages' configs as they are.
        unchanged = dict.fromkeys(stages, Override(method, {}))
        reference = Row(method, method, overrides.get(method, unchanged), [])
    return Table(
        content['title'],
        preset,
        presets[preset]['label'],
        presets[preset].get('gpus', 0),
        content['group'],
        reference,
        stages,
        columns,
        paper_columns,
        [
            Row(
                name,
                declared.get('label') or name,
                overrides[name],
                _read_paper(file, name, _of_preset(declared.get('paper'), preset), paper_columns),
            )
            for name, declared in shown.items()
            if not only or name in only
        ],
    )


def _rows_of(file: Path, preset: str, rows: dict, presets: list[str]) -> dict:
    """The rows that belong to a preset alone, or else those that belong to all others."""
    for name, declared in rows.items():
        if 'preset' in declared:
            _check_name(f"{file}: row '{name}': preset", declared['preset'], presets)
    own = {name: row for name, row in rows.items() if row.get('preset') == preset}
    return own or {name: row for name, row in rows.items() if 'preset' not in row}


def _read_stages(
    file: Path, settings: dict, headings: dict
) -> tuple[dict[str, Stage], list[Column]]:
    """The columns of a preset, and the stages that they need."""
    stages = {}
    for name, declared in settings['stages'].items():
        stages[name] = _read_stage(f'{file}: stage {name}', name, declared, stages)
    for stage in stages.values():
        for name in stage.needs:
            _check_name(f'{file}: stage that {stage.name} needs,', name, stages)
    columns = []
    for heading, (stage, metrics) in headings.items():
        _check_name(f"{file}: stage of column '{heading}'", stage, stages)
        metrics = (metrics,) if isinstance(metrics, str) else tuple(metrics)
        columns.append(Column(heading, stage, metrics))
    stages = needed_stages(stages, columns)
    for stage in stages.values():
        if not find_file(stage.config).is_file():
            raise FileNotFoundError(
                f'{file}: stage {stage.name} names {stage.config}, which does not exist'
            )
    return stages, columns


def _read_stage(where: str, name: str, declared: dict, before: dict[str, Stage]) -> Stage:
    """One stage; ``before`` are those declared before it."""
    tested = declared.get('tests')
    keys = _ENSEMBLE_KEYS if declared.get('ensemble') else _STAGE_KEYS
    _check_keys(where, declared, _TEST_KEYS if tested else keys)
    options = _flat_options(where, declared.get('options', {}))
    if tested:
        trainings = {name: stage for name, stage in before.items() if stage.trains}
        _check_name(f'{where} tests', tested, trainings)
        trained = trainings[tested]
        return trained._replace(
            name=name,
            config=declared.get('config', trained.config),
            after=tested,
            options=trained.options | options,
            tests_only=True,
        )
    return Stage(
        name,
        declared['config'],
        tuple(declared['takes']),
        declared.get('after'),
        options,
        tuple(declared.get('ensemble', ())),
    )


def _read_overrides(
    file: Path, name: str, rows: dict, all_stages: set[str], stages: dict[str, Stage]
) -> dict[str, Override]:
    """What a row changes, by stage."""
    where = f"{file}: row '{name}'"
    _check_keys(where, rows[name], _ROW_KEYS)
    of_stages = rows[name].get('stages', {})
    for stage in of_stages:
        _check_name(f'{where}: stage', stage, sorted(all_stages))
    overrides = {}
    for stage, settings in stages.items():
        trained = settings.after if settings.tests_only else stage
        override = of_stages.get(trained, rows[name].get('override', {}))
        source = name
        if isinstance(override, str):  # the override of another row
            _check_name(f'{where}: row of stage {stage},', override, rows)
            source, override = override, rows[override].get('override', {})
        overrides[stage] = Override(source, _flat_options(where, override))
    for name, override in overrides.items():
        is_own = isinstance(of_stages.get(name), dict)  # of this stage, not of all of them
        _check_taken(where, override, [stages[name]] if is_own else list(stages.values()))
    return overrides


def _check_taken(where: str, override: Override, stages: list[Stage]) -> None:
    """Refuses a change that none of the stages takes."""
    for key in override.changes:
        if not any(stage.takes_key(key) for stage in stages):
            takes = ', '.join(sorted({prefix for stage in stages for prefix in stage.takes}))
            reason = f'no stage takes; the stages take {takes}'
            if len(stages) == 1:
                reason = f'stage {stages[0].name} does not take; it takes {takes}'
            raise ValueError(f'{where} sets {key}, which {reason}')


def _of_preset(value: list | dict | None, preset: str) -> list:
    """What a list, or one of the lists by preset, is under a preset."""
    return (value.get(preset) if isinstance(value, dict) else value) or []


def _read_paper(file: Path, name: str, figures: list, columns: list[str]) -> list[float]:
    """The paper's figures of a row; empty for none."""
    if figures and len(figures) != len(columns):
        raise ValueError(
            f"{file}: row '{name}' has {len(figures)} of the paper's figures, and there are "
            f'{len(columns)} paper_columns'
        )
    return figures


def _flat_options(where: str, nested: dict) -> dict[str, object]:
    """Values by dotted key; only those that ``--cfg-options`` can express."""
    options = dict(_flatten(nested))
    for key, value in options.items():
        if read_value(write_value(value)) != value:
            raise ValueError(f'{where}: {key}={value!r} has no form on a command line')
    return options


def _flatten(nested: dict, prefix: str = '') -> Iterable[tuple[str, object]]:
    for key, value in nested.items():
        if isinstance(value, dict) and value:
            yield from _flatten(value, f'{prefix}{key}.')
        else:
            yield f'{prefix}{key}', value


def _check_name(what: str, name: str | None, known: Iterable[str]) -> None:
    if name not in known:
        raise ValueError(f"{what} '{name}' is unknown, expected one of {', '.join(known)}")


def _check_keys(where: str, declared: dict, known: tuple[str, ...]) -> None:
    for key in declared:
        if key not in known:
            raise ValueError(f'{where} {no_key(key, known)}')
