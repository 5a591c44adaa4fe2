"""The average of the weights: its equation, its metrics, its place in a run."""

import numpy as np
import pytest
import torch
from mmengine.hooks import Hook
from runs import assert_same_end, call_at, load, stop, train

from tools.model_converters import final_weights
from xmodal.engine.launch import build_runner
from xmodal.engine.queries import keep_queries, query_results
from xmodal.errors import ConfigError
from xmodal.registry import HOOKS

DECAY = 0.6  # below (1 + t) / (10 + t) from step 9 on
KEPT = {}


@HOOKS.register_module(force=True)
class KeepWeights(Hook):
    """Keeps the trained weights of every step."""

    priority = 'LOWEST'

    def before_train(self, runner):
        KEPT['weights'] = [self.copy(runner)]

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        KEPT['weights'].append(self.copy(runner))

    @staticmethod
    def copy(runner):
        trained = {n: p for n, p in runner.model.named_parameters() if p.requires_grad}
        return {name: x.detach().double().numpy().copy() for name, x in trained.items()}


@pytest.fixture
def config(tiny_config):
    tiny_config.custom_hooks += [dict(type='WeightEMAHook', decay=DECAY)]
    tiny_config.train_cfg.max_epochs = 3
    tiny_config.param_scheduler[1].end = 12
    return tiny_config


def test_the_average_is_that_of_a_loop_over_the_equation(config):
    config.custom_hooks += [dict(type='KeepWeights')]
    train(config)
    steps = KEPT['weights']
    assert len(steps) == 13
    average = load(f'{config.work_dir}/epoch_3.pth')['weight_ema']
    assert average['steps'] == 12 and not any('teacher' in name for name in average['weights'])
    assert average['weights'].keys() == steps[0].keys()
    for name, expected in steps[0].items():
        for t in range(1, 13):
            decay = min(DECAY, (1 + t) / (10 + t))
            expected = decay * expected + (1 - decay) * steps[t][name]
        found = average['weights'][name].double().numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6, err_msg=name)


def test_the_average_takes_the_place_of_the_weights_and_not_of_the_teacher(
    config, tmp_path, monkeypatch
):
    config.train_cfg.max_epochs = 1
    config.dump(tmp_path / 'config.py')
    train(config)
    checkpoint, out = f'{config.work_dir}/epoch_1.pth', tmp_path / 'final.pth'
    arguments = [f'{tmp_path}/config.py', checkpoint, str(out), '--ema']
    monkeypatch.setattr('sys.argv', ['final_weights.py', *arguments])
    final_weights.main()
    end, found = load(checkpoint), load(out)['state_dict']
    assert found.keys() == end['state_dict'].keys() and any('teacher' in name for name in found)
    for name, value in (end['state_dict'] | end['weight_ema']['weights']).items():
        assert torch.equal(found[name], value), name


def test_it_is_evaluated_beside_the_weights_which_stay(config):
    config.train_cfg.update(max_epochs=1, val_interval=1)
    config.custom_hooks[-1].decay = 0.0  # m_t = 0: the average is the weights
    runner = train(config)
    values = {name: x.current() for name, x in runner.message_hub.log_scalars.items()}
    metrics = {name: x for name, x in values.items() if name.startswith('val/ema/')}
    assert len(metrics) > 3
    for name, value in metrics.items():
        assert value == values[name.replace('ema/', '')], name
    checkpoint = load(f'{config.work_dir}/epoch_1.pth')
    for name, value in runner.model.state_dict().items():
        assert torch.equal(value, checkpoint['state_dict'][name]), name


def test_a_checkpoint_is_tested_with_both_and_each_is_what_its_weights_give(config, tmp_path):
    config.train_cfg.update(max_epochs=1)
    train(config)
    file = f'{config.work_dir}/epoch_1.pth'

    def tested(checkpoint, hooks, **changes):
        test = config.copy()
        test.merge_from_dict({'load_from': str(checkpoint), **changes})
        test.update(custom_hooks=hooks, work_dir=str(tmp_path / 'test'))
        test.experiment_name = f'{checkpoint}{len(hooks)}'
        runner = build_runner(test)
        keep_queries(runner.test_loop)
        return runner.test(), query_results(runner.test_loop)

    rankings = tmp_path / 'rankings.json'
    both, queries = tested(file, config.custom_hooks, **{'test_cfg.save_rankings': str(rankings)})
    plain, expected = tested(file, [])
    for kind, results in expected.items():
        for name, values in results.columns.items():
            np.testing.assert_array_equal(queries[kind].columns[name], values)
    saved = torch.load(file, weights_only=True)
    saved['state_dict'] |= saved['weight_ema']['weights']
    torch.save(saved, tmp_path / 'averaged.pth')
    averaged, other = tested(tmp_path / 'averaged.pth', [])
    assert any(
        not np.array_equal(values, queries[kind].columns[name])
        for kind, results in other.items()
        for name, values in results.columns.items()
    )
    assert rankings.is_file() and plain != averaged
    assert both == plain | {f'ema/{name}': value for name, value in averaged.items()}


def test_a_resumed_run_ends_as_the_whole_one(config, tmp_path):
    config.train_cfg.max_epochs = 2
    config.default_hooks.checkpoint.update(by_epoch=False, interval=3)
    train(config)
    part = config.copy()
    part.update(work_dir=str(tmp_path / 'part'), custom_hooks=[*config.custom_hooks])
    interrupted = part.copy()
    interrupted.custom_hooks = [*part.custom_hooks, call_at(5, stop)]
    with pytest.raises(KeyboardInterrupt):
        train(interrupted)
    train(part, resume=True)
    ends = [sorted((tmp_path / name).glob('iter_*.pth'))[-1] for name in ('run', 'part')]
    assert_same_end(*ends)
    one, other = (load(file)['weight_ema'] for file in ends)
    assert one['steps'] == other['steps'] > 3
    for name, value in one['weights'].items():
        assert torch.equal(value, other['weights'][name]), name


def test_a_checkpoint_without_averages_and_a_wrong_decay_are_sentences(config):
    plain = config.copy()
    plain.custom_hooks = config.custom_hooks[:-1]
    train(plain, **{'train_cfg.max_epochs': 1})
    with pytest.raises(ValueError, match='no averages of weights.*remove WeightEMAHook'):
        train(config, resume=True)
    with pytest.raises(ConfigError, match=r'WeightEMAHook\.decay=1\.5, expected'):
        HOOKS.build(dict(type='WeightEMAHook', decay=1.5))


def test_a_test_of_a_checkpoint_without_averages_ends_before_it_evaluates(config, monkeypatch):
    plain = config.copy()
    plain.custom_hooks = config.custom_hooks[:-1]
    train(plain, **{'train_cfg.max_epochs': 1})
    config.update(load_from=f'{config.work_dir}/epoch_1.pth', experiment_name='test')
    runner = build_runner(config)
    monkeypatch.setattr(runner.test_loop, 'evaluate', lambda model: pytest.fail('evaluated'))
    with pytest.raises(ValueError, match='no averages of weights.*remove WeightEMAHook'):
        runner.test()
