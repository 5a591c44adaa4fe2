"""One training of a row as a config, to print or to train without the rest of the table."""

from copy import deepcopy
from pathlib import Path
from pprint import pformat

from mmengine.config import Config

from xmodal.ablation.declaration import find_table, read_table
from xmodal.ablation.runs import best_checkpoint
from xmodal.ablation.table import Row, Stage, Table
from xmodal.errors import ConfigError

ROOT = Path('work_dirs/rows')  # apart from those of tools/ablate.py, which have seeds


def row_config(name: str, preset: str | None = None) -> Config:
    """The config of one stage of a row, with its work dir.

    The work dir is ``work_dirs/rows/GROUP_PRESET/ROW/STAGE``. A stage that starts from another
    stage's checkpoint has ``load_from`` set to the one in that stage's work dir.

    Args:
        name: TABLE:ROW or TABLE:ROW:STAGE, such as ``acerpe/table7:groups_4``. The default stage
            is the first training that the row changes.
        preset: None for the first of the table.

    Raises:
        ConfigError: when the name has another form, or the stage is no training of this table.
        ValueError: when table, preset or row are unknown, with the known ones.
    """
    table_name, row_name, stage_name = _parse(name)
    table = read_table(find_table(table_name), preset, [row_name])
    (row,) = table.rows
    stage = _training(table, row, stage_name)
    config = deepcopy(row.config(stage))
    folder = ROOT / f'{table.group}_{table.preset}' / row.name
    config.work_dir = str(folder / stage.name)
    if stage.after:
        source = table.stages[stage.after]
        config.load_from = str(best_checkpoint(folder / source.name, row.config(source)))
    return config


def print_row_config(name: str, preset: str | None = None) -> None:
    """Prints the config of :func:`row_config`, to be saved and trained."""
    print(f'# {name}')
    # In the order of the config, which decides over random initial weights; MMEngine's dump sorts.
    for key, value in row_config(name, preset).to_dict().items():
        print(f'{key} = {pformat(value, width=100, sort_dicts=False)}')


def _parse(name: str) -> tuple[str, str, str | None]:
    """Table, row, and stage or None."""
    parts = name.split(':')
    if len(parts) not in (2, 3) or not all(parts):
        raise ConfigError(
            f"'{name}' names no row: expected TABLE:ROW or TABLE:ROW:STAGE, such as "
            'acerpe/table7:groups_4'
        )
    return parts[0], parts[1], parts[2] if len(parts) == 3 else None


def _training(table: Table, row: Row, name: str | None) -> Stage:
    """The stage of a name, or the first that the row changes."""
    trainings = {stage.name: stage for stage in table.stages.values() if stage.trains}
    if name is None:
        changed = [s for s in trainings.values() if s.taken(row.overrides[s.name])]
        return next(iter(changed or trainings.values()))
    if name not in trainings:
        raise ConfigError(
            f"{table.title}: preset '{table.preset}' trains no stage '{name}', expected one of "
            + ', '.join(trainings)
        )
    return trainings[name]
