"""Training and evaluation away from the CPU, where devices must not be mixed."""

import pytest
import torch
from other_device import OtherDevice, OtherTensor, move, patch

from xmodal.engine.launch import build_runner

CONFIGS = [
    'acerpe/encoder_shapes',
    'acerpe/pretrain_shapes',
    'acerpe/grounding_shapes',
    'acerpe/snli_ve_shapes',
    'acerpe/nlvr2_shapes',
    'acerpe/vqa_shapes',
    'emkum/tte_post_shapes',
    'lxmert/pretrain_acerpe_shapes',
    'lxmert/vqa_shapes',
    'temde/dual_temde_shapes',
    'temde/saf_temde_shapes',
    'temde/sgr_self_attention_shapes',
]


def make_shallow(part):
    """Leaves one layer in each encoder: the next ones would repeat its operations."""
    for key, value in part.items():
        if key in ('depth', 'num_hidden_layers'):
            part[key] = 1
        elif isinstance(value, dict):
            make_shallow(value)


@pytest.fixture
def load(relocated, small_world, tmp_path, monkeypatch):
    """Builds a config's runner on the small world, with its model on the other device."""

    def build(name):
        config = relocated(f'configs/{name}.py', small_world)
        make_shallow(config.model)
        config.update(work_dir=str(tmp_path), experiment_name=name)
        config.train_dataloader.global_batch_size = 8
        runner = build_runner(config)
        runner._train_loop = runner.build_train_loop(runner._train_loop)
        move(runner.model)
        patch(monkeypatch)
        return runner

    return build


def test_tensors_of_two_devices_do_not_mix():
    with OtherDevice():
        other = torch.ones(2, 3, device='meta')
        assert isinstance(other, OtherTensor)
        assert (other * torch.tensor(2.0)).sum().item() == 12
        assert other.cpu().numpy().sum() == 6
        with pytest.raises(RuntimeError, match='mul of tensors on two devices'):
            other * torch.ones(2, 3)
        with pytest.raises(TypeError, match='numpy'):
            other.numpy()


@pytest.mark.parametrize('name', CONFIGS)
def test_a_step_and_an_evaluation_stay_on_the_models_device(load, name):
    runner = load(name)
    model = runner.model.train()
    if hasattr(model, 'distillation_weight'):
        model.distillation_weight = 0.4
    with OtherDevice():
        batch = model.data_preprocessor(next(iter(runner.train_dataloader)), True)
        logs = model(**batch, mode='loss')
        sum(value for key, value in logs.items() if 'loss' in key).backward()
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=False)
        optimizer.step()
        if hasattr(model, 'update_momentum'):
            model.update_momentum()
        assert all(isinstance(value, OtherTensor) for value in logs.values())
        if runner._test_loop is not None:
            runner.call_hook = lambda *_, **__: None  # hooks count on a run around them
            loop = runner.build_test_loop(runner._test_loop)
            runner._test_loop = loop
            metrics = loop.run()
            assert metrics and all(torch.tensor(list(metrics.values())).isfinite())
