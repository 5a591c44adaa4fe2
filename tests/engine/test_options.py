"""Options of a run that change its cost and not its numbers."""

from pathlib import Path

import pytest
import torch
from mmengine.config import ConfigDict
from runs import assert_equal, load, train
from torch import nn

from xmodal.engine.launch import build_runner
from xmodal.engine.layers import recompute_activations
from xmodal.errors import ConfigError

ALL = ['Block', 'BertLayer', 'FusionLayer']


def end(config, tmp_path, name, **changes):
    """The last checkpoint's weights of one epoch."""
    train(config, work_dir=str(tmp_path / name), **{'train_cfg.max_epochs': 1, **changes})
    return load(tmp_path / name / 'epoch_1.pth')['state_dict']


def test_recomputed_activations_change_neither_weights_nor_their_names(tiny_config, tmp_path):
    # Dropout: what is computed again draws the same.
    tiny_config.model.backbone.fusion.dropout = 0.1
    kept = end(tiny_config, tmp_path, 'kept')
    again = end(tiny_config, tmp_path, 'again', activation_checkpointing=ALL)
    assert_equal(kept, again)


def test_recomputed_activations_in_bfloat16_are_those_of_the_forward_pass(tiny_config, tmp_path):
    # PyTorch compares their shapes and types.
    end(tiny_config, tmp_path, 'again', activation_checkpointing=ALL,
        **{'optim_wrapper.dtype': 'bfloat16'})  # fmt: skip


def test_checkpoints_in_another_folder_than_the_run_are_refused(tiny_config, tmp_path):
    with pytest.raises(ConfigError, match='checkpoint.out_dir=.*give the other folder as work_dir'):
        train(tiny_config, **{'default_hooks.checkpoint.out_dir': str(tmp_path)})


def test_recomputing_an_unknown_module_is_an_error(tiny_config):
    with pytest.raises(ValueError, match=r"names \['Blok'\], but the model is made of .*'Block'"):
        train(tiny_config, activation_checkpointing=['Blok'])


def test_recomputing_a_module_that_is_never_called_as_such_is_an_error(tiny_config):
    with pytest.raises(ValueError, match=r"names \['ModuleList'\], of which only methods"):
        train(tiny_config, activation_checkpointing=['ModuleList'])


def test_a_batch_norm_that_would_count_each_batch_twice_is_not_recomputed():
    layers = nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
    with pytest.raises(ConfigError, match="names 'Sequential', whose batch norms"):
        recompute_activations(layers, ['Sequential'])
    recompute_activations(layers.requires_grad_(False), ['Sequential'])


@pytest.mark.parametrize(
    ('task', 'sharded', 'rounds_up'),
    [('snli_ve', False, False), ('snli_ve', True, True), ('retrieval', True, False)],
)
def test_ranks_evaluate_as_many_batches_where_they_call_a_sharded_model_together(
    shrink, task, sharded, rounds_up
):
    config = shrink(f'configs/acerpe/{task}_shapes.py')
    config.experiment_name = f'{task} {sharded}'
    if sharded:
        config.fsdp = dict(units=['Block'])
    runner = build_runner(config)
    for loop in (runner.val_loop, runner.test_loop):
        assert loop.dataloader.sampler.round_up is rounds_up


def test_a_schedule_that_would_begin_after_a_short_run_is_left_out(tiny_config):
    warm_up, fall = tiny_config.param_scheduler
    fall.pop('end')
    assert fall.begin > 1
    runner = train(tiny_config, **{'train_cfg.max_epochs': 1})
    assert [type(schedule).__name__ for schedule in runner.param_schedulers] == [warm_up.type]


@pytest.mark.parametrize('warm_up', [0.2, 0.25, 0.5])
def test_a_warm_up_shorter_than_two_iterations_is_left_out(tiny_config, warm_up):
    linear = dict(type='LinearLR', by_epoch=True, convert_to_iter_based=True)
    tiny_config.param_scheduler = [
        ConfigDict(linear, start_factor=1e-6, end=warm_up),
        ConfigDict(linear, end_factor=0.0, start_factor=1.0, begin=warm_up),
    ]
    runner = train(tiny_config, **{'train_cfg.max_epochs': 1})
    rates, _ = runner.message_hub.log_scalars['train/lr'].data
    # Of four iterations: the whole rate to start with, or two steps up to it, then down to 0.
    expected = {0.2: [1, 2 / 3, 1 / 3, 0], 0.25: [1, 1, 1 / 2, 0], 0.5: [1e-6, 1, 1, 0]}[warm_up]
    assert rates == pytest.approx([1e-3 * rate for rate in expected], abs=1e-12)
    (log,) = Path(runner.log_dir).glob('*.log')
    assert ('LinearLR (begin=0, end=' in log.read_text()) is (warm_up < 0.5)


def test_a_compiled_run_learns_the_same(tiny_config, tmp_path):
    tiny_config.model.heads = {'itc': tiny_config.model.heads.itc}
    plain = end(tiny_config, tmp_path, 'plain')
    compiled = end(tiny_config, tmp_path, 'compiled', compile=dict(backend='eager'))
    assert plain.keys() == compiled.keys()
    # Float noise: four steps of Adam move a weight by up to 4e-3.
    torch.testing.assert_close(plain, compiled, atol=1e-4, rtol=1e-4)


def test_compiled_layers_learn_the_same(tiny_config, tmp_path, monkeypatch):
    tiny_config.model.heads = {name: tiny_config.model.heads[name] for name in ('itc', 'itm')}
    plain = end(tiny_config, tmp_path, 'plain')
    calls, compile_it = [], torch.compile

    def counted(function):
        compiled = compile_it(function, backend='eager')
        return lambda *args, **kwargs: calls.append(function) or compiled(*args, **kwargs)

    monkeypatch.setattr(torch, 'compile', counted)
    methods = ['FusionLayer.attend_self', 'FusionLayer.attend_cross']
    of_others = ['FusionLayer.cross_attention.project', 'NoPosition.relate']  # a part, a base class
    layers = ['Block', 'BertLayer', *methods, *of_others]
    compiled = end(tiny_config, tmp_path, 'compiled', compile=layers)
    names = {function.__qualname__ for function in calls}
    found = ['Attention.project', 'AnchorRelativePosition.relate']
    assert names == {'Module._call_impl', *methods, *found}
    assert plain.keys() == compiled.keys()
    torch.testing.assert_close(plain, compiled, atol=1e-4, rtol=1e-4)


def test_a_method_can_be_compiled_of_a_class_without_forward(tiny_config, tmp_path, monkeypatch):
    tiny_config.model.heads = {'itc': tiny_config.model.heads.itc}
    # Few programs: all texts are equally long, and nothing is evaluated.
    tiny_config.model.data_preprocessor.max_length = 8
    tiny_config.train_cfg.val_begin = 2
    names, compile_it = [], torch.compile
    monkeypatch.setattr(
        torch, 'compile', lambda f: names.append(f.__qualname__) or compile_it(f, backend='eager')
    )
    plain = end(tiny_config, tmp_path, 'plain')
    compiled = end(tiny_config, tmp_path, 'compiled', compile=['AlbefBackbone.encode_text'])
    assert set(names) == {'AlbefBackbone.encode_text'}
    torch.testing.assert_close(plain, compiled, atol=1e-4, rtol=1e-4)


def test_compiling_an_unknown_layer_is_an_error(tiny_config):
    with pytest.raises(ValueError, match=r"compile names \['Blok'\], but the model is made of"):
        train(tiny_config, compile=['Blok'])


def test_compiling_an_unknown_method_is_an_error(tiny_config):
    with pytest.raises(
        ValueError, match="compile names 'Block.attend', but a Block has no 'attend'"
    ):
        train(tiny_config, compile=['Block.attend'])
    with pytest.raises(ValueError, match="a FusionLayer has no 'attention.project'"):
        train(tiny_config, compile=['FusionLayer.attention.project'])
