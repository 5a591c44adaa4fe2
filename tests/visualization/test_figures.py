"""The scalars that the report reads."""

import json

from xmodal.visualization.figures import read_scalars


def test_the_last_value_of_a_resumed_run_counts_and_half_a_line_is_ignored(tmp_path):
    runs = {
        '20260101': [{'loss': 3.0, 'step': 1}, {'loss': 2.0, 'step': 2}],
        '20260102': [{'loss': 2.5, 'step': 2}, {'mean_recall': 50.0, 'step': 2}],
    }
    for name, rows in runs.items():
        (tmp_path / name / 'vis_data').mkdir(parents=True)
        text = ''.join(f'{json.dumps(row)}\n' for row in rows)
        (tmp_path / name / 'vis_data/scalars.json').write_text(text + '{"loss": 1.')
    assert read_scalars(tmp_path) == {
        'loss': [(1, 3.0), (2, 2.5)],
        'mean_recall': [(2, 50.0)],
        'step': [(1, 1), (2, 2)],
    }
