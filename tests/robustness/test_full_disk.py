"""A disk that is full while something is written."""

import resource
import signal
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from mmengine.hooks import Hook
from trials import require_right

from xmodal.checkpoint_file import write_checkpoint
from xmodal.datasets.albef_writer import write_albef_json
from xmodal.datasets.shapes import WorldSpec, build_world
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import build_runner
from xmodal.engine.work_dir import latest_checkpoint
from xmodal.evaluation.scores import ScoreMatrix, write_scores
from xmodal.files import write_json


@contextmanager
def full_disk(room):
    """Lets no file grow beyond so many bytes: writing then fails, as on a disk that is full."""
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
        signal.signal(signal.SIGXFSZ, handler)


WRITERS = {
    'checkpoint': lambda path: write_checkpoint(path, {'w': torch.zeros(10_000)}),
    'metrics': lambda path: write_json(path, list(range(10_000))),
    'annotations': lambda path: write_albef_json(path, [{'image': 'x', 'caption': ['a'] * 10_000}]),
    'scores': lambda path: write_scores(path, ScoreMatrix(*[np.zeros((100, 100))] * 4)),
    'world': lambda path: build_world(path, WorldSpec(train=2, val=1, test=1, size=96), workers=1),
}


@pytest.mark.parametrize('kind', WRITERS)
def test_a_full_disk_is_named_and_leaves_no_half_file(trials, tmp_path, kind):
    def write():
        with full_disk(700):
            run_or_explain(lambda: WRITERS[kind](tmp_path / 'mine'))

    require_right([trials.run('full disk', kind, write, [tmp_path / 'mine'])])
    if kind == 'world':
        assert not (tmp_path / 'mine/meta.json').exists()
    else:
        assert not list(tmp_path.iterdir())


def test_a_training_whose_disk_is_full_keeps_its_last_checkpoint(trials, tiny_config, tmp_path):
    tiny_config.experiment_name = 'full disk'
    tiny_config.val_cfg = tiny_config.val_dataloader = tiny_config.val_evaluator = None
    runner = build_runner(tiny_config)
    run = tmp_path / 'run'

    class Fill(Hook):
        """Fills the disk once there is a checkpoint."""

        def before_train_epoch(self, runner):
            if runner.epoch:
                resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))

    runner.register_hook(Fill())

    def train():
        with full_disk(resource.getrlimit(resource.RLIMIT_FSIZE)[0]):
            run_or_explain(runner.train)

    require_right([trials.run('full disk', 'training', train, [run / 'epoch_2.pth'], seconds=60)])
    assert latest_checkpoint(run) == run / 'epoch_1.pth'
    assert [path.name for path in run.glob('*.pth')] == ['epoch_1.pth']
    assert not list(run.glob('.*'))
