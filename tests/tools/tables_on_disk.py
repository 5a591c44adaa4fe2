"""A table whose runs are written by a test, instead of trained."""

import numpy as np

from xmodal.ablation import Plan, read_table
from xmodal.evaluation.queries import QueryResults, write_queries
from xmodal.files import write_json

TABLE = """
title = 'A table'
group = 'group'
presets = dict(small=dict(label='on a stub', stages=dict(
    task=dict(config='{folder}/task.py', takes=['model']))))
columns = dict(small={{'score': ('task', 'score'), 'other': ('task', 'other')}})
paper_columns = []
rows = dict(
    plain=dict(override=dict(model=dict(position='none'))),
    idea=dict(override=dict(model=dict(position='idea')), label='The idea'),
    third=dict(override=dict(model=dict(position='third'))),
)
"""


def write_table(folder):
    """The declaration and its config."""
    (folder / 'task.py').write_text("train_cfg = dict(max_epochs=1)\nmodel = dict(position='x')\n")
    file = folder / 'table.py'
    file.write_text(TABLE.format(folder=folder))
    return file


def make_plan(folder, seeds=3, only=None):
    """The plan of the table."""
    return Plan(read_table(write_table(folder), only=only), seeds, folder / 'runs')


def write_run(run, values, other=None):
    """A finished run whose queries have these scores."""
    run.folder.mkdir(parents=True, exist_ok=True)
    run.last_checkpoint.write_text('weights')
    columns = {'score': np.array(values, float), 'other': np.array(values, float) * 0}
    names = np.arange(len(values)).astype(str)
    write_queries(run.queries_file, {'q': QueryResults(names, names, columns)})
    metrics = {name: float(column.mean()) for name, column in columns.items()}
    write_json(run.metrics_file, metrics)


def write_row(plan, name, shift, seeds=None, deviation=0.2, queries=200):
    """All seeds of a row: the same queries as every other row, plus a shift, plus noise."""
    base = np.random.default_rng(0).choice([0.0, 100.0], size=queries)
    row = next(row for row in plan.table.rows if row.name == name)
    for seed in range(plan.seeds) if seeds is None else seeds:
        noise = np.random.default_rng([seed, *map(ord, name)])
        values = base + shift + noise.normal(scale=deviation) + noise.normal(size=queries)
        write_run(plan.run_of(row, 'task', seed), values)
