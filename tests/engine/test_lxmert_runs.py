"""LXMERT from config to metrics on a tiny embedded world; its configs and its tables."""

import itertools
import json
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from runs import train

from xmodal.ablation import Plan, read_table
from xmodal.datasets.shapes.detections import ATTRIBUTES, OBJECTS
from xmodal.datasets.shapes.regions import FEATURE_DIMS
from xmodal.registry import MODELS

CONFIGS = sorted(Path('configs/lxmert').glob('*.py'))
SHAPES = [file for file in CONFIGS if file.stem.endswith('_shapes')]
FINETUNED = [file for file in SHAPES if not file.stem.startswith('pretrain')]
WIDTH = 32


@pytest.fixture
def shrink(relocated, tiny_world, tmp_path):
    """Loads a config with the tiny world and a model of 32 dimensions."""

    def load(file):
        config = relocated(file, tiny_world)
        backbone = config.model.backbone
        small = dict(embed_dims=WIDTH, num_heads=2, depth=1, feedforward_dims=WIDTH)
        backbone.image_encoder.update(small)
        backbone.fusion.update(small)
        backbone.text_encoder.config.update(
            hidden_size=WIDTH, num_hidden_layers=1, num_attention_heads=2, intermediate_size=WIDTH
        )
        config.train_dataloader.global_batch_size = 64
        config.train_cfg.max_epochs = 1
        config.work_dir = str(tmp_path / Path(file).stem)
        return config

    return load


def test_pre_training_is_loaded_by_every_fine_tuning_which_trains_and_is_evaluated(shrink):
    config = shrink('configs/lxmert/pretrain_shapes.py')
    config.train_cfg.max_epochs = 2
    config.custom_hooks = [dict(type='DelayedHeadsHook', epochs=dict(answers=1))]  # as pretrain.py
    config.default_hooks.logger.interval = 1
    runner = train(config)
    logged = runner.message_hub.log_scalars
    for name in ('mlm', 'features', 'objects', 'attributes', 'matching', 'answers'):
        assert torch.isfinite(torch.tensor(logged[f'train/loss_{name}'].current())), name
    steps, answered = (len(logged[f'train/loss_{x}'].data[0]) for x in ('mlm', 'answers'))
    assert answered == steps // 2  # the head that begins in the second epoch
    source = torch.load(f'{config.work_dir}/epoch_2.pth', weights_only=True)['state_dict']
    for file in FINETUNED:
        config = shrink(file)
        config.load_from = str(Path(runner.work_dir, 'epoch_2.pth'))
        tuned = train(config)
        metrics = tuned.test()
        score = {'vqa': 'vqa/overall', 'gqa': 'gqa/accuracy', 'nlvr2': 'accuracy'}
        assert 0 <= metrics[score[file.stem.split('_')[0]]] <= 100
        assert (metrics.get('gqa/grounding', 0) > 0) == (file.stem == 'gqa_grounding_shapes')
        words = 'backbone.text_encoder.bert.embeddings.word_embeddings.weight'
        moved = (tuned.model.state_dict()[words] - source[words]).abs().mean()
        assert moved < 0.5 * source[words].abs().mean()  # not drawn anew


def test_ace_rpe_pre_trains_by_one_key(shrink):
    file = 'configs/lxmert/pretrain_acerpe_shapes.py'
    plain = Config.fromfile('configs/lxmert/pretrain_shapes.py').model.to_dict()
    changed = Config.fromfile(file).model.to_dict()
    changed['backbone'].pop('position'), plain['backbone'].pop('position')
    assert changed == plain
    logged = train(shrink(file)).message_hub.log_scalars
    assert 0 <= logged['train/anchor_share_matched'].current() <= 1


def test_the_model_of_the_embedded_world_has_the_detectors_classes():
    model = Config.fromfile('configs/lxmert/pretrain_shapes.py').model
    assert model.backbone.image_encoder.feature_dims == FEATURE_DIMS
    assert model.heads.objects.num_objects == len(OBJECTS)
    assert model.heads.objects.num_attributes == len(ATTRIBUTES)


@pytest.mark.parametrize(
    'name, rate, epochs, batch, clip',
    [
        ('pretrain', 1e-4, 20, 256, 1.0),
        ('vqa_v2', 5e-5, 4, 32, 5.0),
        ('gqa', 1e-5, 4, 32, 5.0),
        ('nlvr2', 5e-5, 4, 32, 5.0),
    ],
)
def test_the_recipes_are_the_published_ones(name, rate, epochs, batch, clip):
    config = Config.fromfile(f'configs/lxmert/{name}.py')
    assert config.optim_wrapper.optimizer == dict(type='BertAdam', lr=rate, weight_decay=0.01)
    assert config.optim_wrapper.clip_grad == dict(max_norm=clip)
    assert config.train_cfg.max_epochs == epochs
    assert config.train_dataloader.global_batch_size == batch
    warm_up, decay = config.param_scheduler
    assert warm_up.end == decay.begin == pytest.approx({20: 1.0, 4: 0.4}[epochs])
    assert config.model.data_preprocessor.max_length == 20


def test_the_presets_differ_where_paper_and_code_do():
    paper, released = (
        Config.fromfile(f'configs/lxmert/{name}.py') for name in ('pretrain', 'pretrain_released')
    )
    switches = ('masking', 'feature_loss', 'label_scope', 'confidence_weight')
    choices = [[c.model.heads.objects[s] for s in switches] for c in (paper, released)]
    assert choices == [
        ['zeros', 'l2', 'masked', False],
        ['bert', 'smooth_l1', 'all', True],
    ]
    assert paper.custom_hooks == [dict(type='DelayedHeadsHook', epochs=dict(answers=10))]
    assert released.custom_hooks == []


def build(model, tmp_path, vocabulary):
    """A model without weights, with a table and a separate vocabulary."""
    answers = tmp_path / 'answers.json'
    answers.write_text(json.dumps(['yes', 'no']))
    model = model.to_dict()
    model['data_preprocessor']['tokenizer']['pretrained'] = vocabulary
    text_encoder = model['backbone']['text_encoder']
    if isinstance(text_encoder.get('config'), str):  # of a package, which may not be installed
        text_encoder['config'] = dict(hidden_size=384)
    for head in [*model.get('heads', {}).values(), model.get('head')]:
        if head and 'answer_list' in head:
            head['answer_list'] = str(answers)
    with torch.device('meta'):
        return MODELS.build(model)


@pytest.fixture
def vocabulary(tiny_world):
    return str(tiny_world / 'vocab.txt')


@pytest.mark.parametrize('file', CONFIGS, ids=lambda file: file.stem)
def test_every_config_builds_and_none_writes_where_another_does(file, tmp_path, vocabulary):
    config = Config.fromfile(file)
    build(config.model, tmp_path, vocabulary)
    assert config.work_dir == f'work_dirs/lxmert_{file.stem}'
    if config.load_from:
        kinds = dict(
            shapes='pretrain_shapes', grid='pretrain_photographs_grid',
            boxes='nlvr1_words', statements='nlvr1_boxes', regions='nlvr1_statements',
        )  # fmt: skip
        stem = kinds.get(file.stem.rpartition('_')[2], 'pretrain')
        epochs = Config.fromfile(f'configs/lxmert/{stem}.py').train_cfg.max_epochs
        assert config.load_from == f'work_dirs/lxmert_{stem}/epoch_{epochs}.pth'


BUILT = {}  # by config: cells share most of their models


@pytest.mark.parametrize(
    'table, preset',
    [
        *itertools.product(['table2', 'table4', 'table5', 'tasks'], ['shapes', 'full']),
        ('nlvr1', 'nlvr1'),
    ],
)
def test_every_cell_of_the_tables_is_a_model_that_can_be_built(table, preset, tmp_path, vocabulary):
    ablation = read_table(f'configs/lxmert/ablations/{table}.py', preset)
    for row in ablation.rows:
        for stage in ablation.stages.values():
            config = row.config(stage).model
            model = BUILT.get(str(config)) or build(config, tmp_path, vocabulary)
            BUILT[str(config)] = model
            if stage.name == 'pretrain':
                assert ('answers' in model.heads) == (row.name != 'p20')
                assert ('objects' in model.heads) == (row.name != 'no_vision')


@pytest.mark.parametrize('preset', ['shapes', 'full'])
def test_a_row_of_one_modality_shares_the_pre_training_and_hides_the_other_in_fine_tuning(
    preset, tmp_path
):
    plan = Plan(read_table('configs/lxmert/ablations/table2.py', preset), 1, tmp_path)
    pretrain = {plan.run_of(row, 'pretrain', 0) for row in plan.table.rows}
    assert len(pretrain) == 1  # and it sees both
    assert next(iter(pretrain)).folder.parts[-3:] == ('full', 'seed_0', 'pretrain')
    for row, only in zip(plan.table.rows, ('image', 'text', None), strict=True):
        for stage in ('vqa', 'gqa', 'nlvr2'):
            model = plan.run_of(row, stage, 0).config.model
            assert model.data_preprocessor.get('only') == only


@pytest.mark.parametrize('task, only', [('vqa', 'image'), ('nlvr2', 'text')])
def test_a_model_of_one_modality_trains_and_is_evaluated(shrink, task, only):
    config = shrink(f'configs/lxmert/{task}_shapes.py')
    config.model.data_preprocessor.only = only
    runner = train(config)
    score = {'vqa': 'vqa/overall', 'nlvr2': 'accuracy'}[task]
    assert 0 <= runner.test()[score] <= 100
