"""Training, evaluation and compiled layers on a GPU, where there is one."""

import pytest
import torch
from runs import train
from test_other_device import CONFIGS
from torch.profiler import ProfilerActivity, profile

from xmodal.engine.launch import build_runner
from xmodal.engine.layers import compile_layers
from xmodal.models.layers import Attention

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a GPU')


def forget_weights(config):
    """Lets every image encoder of a config start from random weights."""
    for part in config.values():
        if isinstance(part, dict):
            forget_weights(part)
    if str(config.get('pretrained')).endswith('.pth'):
        config['pretrained'] = False


@pytest.fixture
def load(relocated, small_world, tmp_path):
    """Reads a config on the small world, for one epoch."""

    def read(name):
        config = relocated(f'configs/{name}.py', small_world)
        config.update(work_dir=str(tmp_path / 'run'), experiment_name=name)
        config.train_dataloader.global_batch_size = 8
        config.train_cfg.update(max_epochs=1, val_interval=1)
        forget_weights(config.model)
        return config

    return read


@pytest.mark.parametrize('name', CONFIGS)
def test_a_run_in_bfloat16_trains_and_is_evaluated(load, name):
    config = load(name)
    config.optim_wrapper.dtype = 'bfloat16'
    runner = train(config)
    assert all(weight.is_cuda and weight.isfinite().all() for weight in runner.model.parameters())
    assert runner.optim_wrapper.skipped == 0
    if config.get('test_dataloader'):
        metrics = runner.test()
        assert metrics and all(torch.tensor(list(metrics.values())).isfinite())


def tensors(output):
    """All tensors of nested tuples."""
    if isinstance(output, torch.Tensor):
        return [output]
    if isinstance(output, tuple | list):
        return [tensor for part in output for tensor in tensors(part)]
    return []


@pytest.mark.parametrize('name', [name for name in CONFIGS if name != 'acerpe/vqa_shapes'])
def test_outputs_are_those_of_the_cpu(load, name, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, 'allow_tf32', False)  # convolutions in float32
    runner = build_runner(load(name))
    model, data = runner.model.eval(), next(iter(runner.train_dataloader))
    with torch.no_grad():
        on_gpu = tensors(model(**model.data_preprocessor(data), mode='tensor'))
        model.cpu()
        on_cpu = tensors(model(**model.data_preprocessor(data), mode='tensor'))
    assert on_gpu and all(tensor.is_cuda for tensor in on_gpu)
    for gpu, cpu in zip(on_gpu, on_cpu, strict=True):
        torch.testing.assert_close(gpu.cpu(), cpu, atol=2e-4, rtol=1e-3)


def test_compiled_layers_have_the_same_losses_and_gradients(load):
    config = load('acerpe/pretrain_shapes')
    runner = build_runner(config)
    model = runner.model.eval()
    inputs = model.data_preprocessor(next(iter(runner.train_dataloader)), True)

    def step():
        torch.manual_seed(0)
        losses = model(**inputs, mode='loss')
        sum(value for key, value in losses.items() if 'loss' in key).backward()
        gradients = {k: w.grad.clone() for k, w in model.named_parameters() if w.grad is not None}
        model.zero_grad()
        return gradients

    plain = step()
    compile_layers(model, ['Block', 'BertLayer', 'FusionLayer'])
    compiled = step()
    assert plain.keys() == compiled.keys()
    for name, gradient in plain.items():
        torch.testing.assert_close(compiled[name], gradient, atol=1e-3, rtol=1e-2, msg=name)


@torch.no_grad()
@pytest.mark.parametrize('keys', [20, 36, 257])
def test_cudnn_has_no_short_context(keys):
    attention, mask = Attention(768, 12), torch.arange(keys) < torch.tensor([[keys], [keys - 3]])
    query, context = torch.randn(2, 30, 768), torch.randn(2, keys, 768)
    expected, _ = attention(attention.project(query), attention.project(context), mask)
    attention, query, context, mask = attention.cuda(), query.cuda(), context.cuda(), mask.cuda()
    with torch.autocast('cuda', torch.bfloat16), profile(activities=[ProfilerActivity.CPU]) as run:
        found, _ = attention(attention.project(query), attention.project(context), mask)
    assert keys > 64 or not any('cudnn_attention' in event.name for event in run.events())
    torch.testing.assert_close(found.cpu().float(), expected, atol=5e-3, rtol=2e-2)
