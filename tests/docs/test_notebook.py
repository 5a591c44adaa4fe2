"""The notebook of the first run, on a world of a few scenes."""

from pathlib import Path

import pytest

nbclient = pytest.importorskip('nbclient', reason="notebooks need the extra 'docs'")
pytest.importorskip('ipykernel', reason="notebooks need the extra 'docs'")

NOTEBOOK = Path('docs/tutorials/first_run.ipynb')
SMALL = """
SCENES, HELD_OUT = 16, 4
ENCODER_EPOCHS, EPOCHS = 1, 1
OPTIONS = {
    'train_dataloader.global_batch_size': 8,
    'train_dataloader.num_workers': 0,
    'train_dataloader.persistent_workers': False,
    'default_hooks.logger.interval': 1,
}
"""


@pytest.fixture(scope='module')
def cells(tmp_path_factory):
    """The cells after they were run, without those of text."""
    import nbformat

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    (parameters,) = (c for c in notebook.cells if 'parameters' in c.metadata.get('tags', []))
    parameters.source = SMALL
    folder = tmp_path_factory.mktemp('notebook')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('PYTHONPATH', str(Path.cwd()))
        resources = {'metadata': {'path': str(folder)}}
        nbclient.NotebookClient(notebook, timeout=300, resources=resources).execute()
    assert (folder / 'work_dirs/pretrain_shapes/epoch_1.pth').is_file()
    return [cell for cell in notebook.cells if cell.cell_type == 'code']


def shown(cell, kind):
    return [out.data[kind] for out in cell.outputs if kind in out.get('data', {})]


def test_the_first_run_trains_tests_and_draws(cells):
    drawn = [cell for cell in cells if shown(cell, 'image/png')]
    assert [('build_world' in c.source, 'heatmap' in c.source) for c in drawn] == [
        (True, False),
        (False, True),
    ]
    (metrics,) = (cell for cell in cells if 'runner.test()' in cell.source)
    *_, text = shown(metrics, 'text/plain')
    recalls = eval(text)
    assert {'i2t/R@1', 't2i/R@1', 'mean_recall'} <= recalls.keys()
    assert recalls['t2i/R@5'] == 100.0  # there are but four images


def test_the_notebook_is_kept_without_outputs():
    import nbformat

    code = [c for c in nbformat.read(NOTEBOOK, as_version=4).cells if c.cell_type == 'code']
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
