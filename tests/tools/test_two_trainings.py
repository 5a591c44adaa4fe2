"""Trainings on two processes."""

import torch
from ranks import RANKS, run_on_ranks

PLANT = """
import torch
from mmengine.dist import get_rank
from mmengine.hooks import Hook
from xmodal.engine.wrappers import unwrap
from xmodal.registry import HOOKS

@HOOKS.register_module()
class SaveTeacher(Hook):
    priority = 'LOWEST'

    def after_train_iter(self, runner, *_, **__):
        weights = unwrap(runner.model).teacher.state_dict()
        torch.save(weights, f'{runner.work_dir}/teacher_{get_rank()}.pt')
"""


def test_the_teacher_is_the_same_in_all_processes(shrink, tmp_path, monkeypatch):
    """Also where no checkpoint is saved, which makes running statistics the same."""
    config = shrink('configs/acerpe/pretrain_shapes_temde.py')
    config.model.momentum, config.model.heads = 0.9, dict(itc=dict(type='ITCHead'))
    config.custom_imports = dict(imports=['planted'])
    config.custom_hooks = [dict(type='MomentumDistillationHook'), dict(type='SaveTeacher')]
    config.train_dataloader.num_batch_per_epoch = 2
    config.train_cfg.update(max_epochs=1, val_begin=2)
    config.dump(tmp_path / 'config.py')
    (tmp_path / 'planted.py').write_text(PLANT)
    monkeypatch.syspath_prepend(tmp_path)
    run_on_ranks('tools/train.py', tmp_path / 'config.py', folder=tmp_path)
    one, *others = (torch.load(tmp_path / f'run/teacher_{rank}.pt') for rank in range(RANKS))
    moved = [name for name, x in one.items() if name.endswith('running_mean') and x.any()]
    assert len(moved) == 2  # of the sketches of images and of texts
    for other in others:
        assert [name for name, x in one.items() if not x.equal(other[name])] == []
