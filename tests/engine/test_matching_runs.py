"""Matching on the embedded world, from config to score matrix; and the configs of all data."""

import copy
import json
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from runs import train

from tools.analysis import report
from xmodal.ablation import read_table
from xmodal.engine.launch import build_runner
from xmodal.evaluation import Gallery, average_scores, read_scores, retrieval_metrics
from xmodal.registry import MODELS
from xmodal.vocabulary import SPECIAL_WORDS, Vocabulary

# Without those of photographs, whose encoders come with packages (test_dual_photographs.py).
CONFIGS = sorted(
    file for file in Path('configs/temde').glob('*.py') if not file.stem.endswith('_flickr8k')
)
SHAPES = [file for file in CONFIGS if file.stem.endswith('_shapes')]


@pytest.fixture
def shrink(tiny_world, tmp_path):
    """Loads a config with the tiny world."""

    def load(file):
        config = Config.fromfile(file)
        folder = tiny_world / 'precomp'
        config.model.data_preprocessor.tokenizer.vocabulary = str(folder / 'vocab.json')
        for name in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
            config[name].dataset.data_root = str(folder)
            config[name].update(num_workers=0, persistent_workers=False)
        config.train_dataloader.global_batch_size = 40
        config.train_cfg.update(max_epochs=1, val_interval=1)
        config.work_dir = str(tmp_path / 'run')
        return config

    return load


@pytest.mark.parametrize('file', SHAPES, ids=lambda file: file.stem)
def test_a_config_of_the_embedded_world_trains_and_is_evaluated(shrink, file):
    runner = train(shrink(file))
    assert runner.iter == 4
    logged = runner.message_hub.log_scalars
    assert 0 <= logged['val/rsum'].current() <= 600
    assert torch.isfinite(torch.tensor(logged['train/loss'].current()))


def test_of_a_static_sketch_the_layers_after_it_learn_alone(shrink):
    runner = build_runner(shrink('configs/temde/dual_emde_shapes.py'))
    before = {
        name: value.clone()
        for name, value in runner.model.state_dict().items()
        if isinstance(value, torch.Tensor)
    }
    runner.train()
    after = runner.model.state_dict()
    changed = {name for name, old in before.items() if not after[name].equal(old)}
    assert changed == {
        f'similarity.{side}_{part}'
        for side in ('image', 'text')
        for part in ('proj.weight', 'proj.bias', 'pooling.thresholds')
    }
    # A checkpoint carries the fit: it can be evaluated at once.
    assert 0 <= runner.val()['rsum'] <= 600


def test_matching_with_bert_trains_it_at_a_tenth_of_the_learning_rate(shrink, tiny_world):
    config = shrink('configs/temde/dual_gpo_bert_f30k.py')
    config.model.data_preprocessor.tokenizer = dict(pretrained=str(tiny_world / 'vocab.txt'))
    config.model.image_encoder.feature_dims = 259
    config.model.text_encoder.update(
        pretrained=None,
        config=dict(
            hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
        ),
    )
    runner = train(config)
    rates = {}
    for group in runner.optim_wrapper.optimizer.param_groups:
        for parameter in group['params']:
            rates[parameter] = group['lr']
    for name, parameter in runner.model.named_parameters():
        expected = 5e-5 if name.startswith('text_encoder.bert.') else 5e-4
        assert rates[parameter] == pytest.approx(expected), name
    assert 0 <= runner.message_hub.log_scalars['val/rsum'].current() <= 600


@pytest.mark.parametrize('name, sketched', [('dual_temde', True), ('dual_mean', False)])
def test_the_report_of_matching_names_images_and_shows_sketches(
    shrink, monkeypatch, name, sketched
):
    config = shrink(f'configs/temde/{name}_shapes.py')
    config.default_hooks.logger.interval = 1
    config.test_cfg.save_rankings = f'{config.work_dir}/rankings.json'
    # As COCO's: parts first, then all.
    config.test_evaluator = [
        dict(type='RetrievalMetric', folds=2, prefix='parts'),
        dict(type='RetrievalMetric', prefix='all'),
    ]
    runner = train(config)
    metrics = runner.test()
    monkeypatch.setattr('sys.argv', ['report.py', config.work_dir])
    report.main()
    page = Path(config.work_dir, 'report.html').read_text()
    rankings = json.loads(Path(config.test_cfg.save_rankings).read_text())
    assert f'{metrics["all/mean_recall"]:.1f}</b><span>mean recall' in page
    assert 'image-to-text, parts' in page and 'text-to-image, all' in page
    shown = [1, 3, 5, 7]  # four of ten, evenly
    assert [rankings['images'][image] in page for image in shown] == [True] * 4
    right = sum(
        image in rankings['ranked_images'][rankings['text_to_image'].index(image)][:3]
        for image in shown
    )
    assert page.count('class="named correct"') == right
    assert page.count('<img') == 0 and 'Heat maps' not in page
    assert ('Words in the sketch' in page) == sketched


def test_scores_of_two_models_are_saved_and_averaged(shrink, tmp_path):
    files = []
    for name in ('saf', 'sgr'):
        config = shrink(f'configs/temde/{name}_temde_shapes.py')
        config.experiment_name = f'scores of {name}'
        config.test_cfg.save_scores = str(tmp_path / f'{name}.npz')
        metrics = build_runner(config).test()
        files.append(config.test_cfg.save_scores)
        scores = read_scores(files[-1])
        assert scores.scores.shape == (10, 50)
        assert retrieval_metrics(scores.gallery)['rsum'] == pytest.approx(metrics['rsum'])
    mean = average_scores(files)
    expected = sum(read_scores(file).scores for file in files) / 2
    assert (mean.scores == expected).all()


def build(config, tmp_path, words=('a', 'dog')):
    """The model of a config without weights, with a separate vocabulary."""
    vocabulary = tmp_path / 'vocab.json'
    Vocabulary([*SPECIAL_WORDS, *words]).write(vocabulary)
    model = copy.deepcopy(config.model)
    model.data_preprocessor.tokenizer.vocabulary = str(vocabulary)
    with torch.device('meta'):
        return MODELS.build(model)


@pytest.mark.parametrize('file', CONFIGS, ids=lambda file: file.stem)
def test_the_model_of_every_config_is_what_its_name_says(file, tmp_path):
    model = build(Config.fromfile(file), tmp_path)
    similarity = model.similarity
    kind, _, module = file.stem.rpartition('_')[0].partition('_')
    if kind == 'dual':
        expected = {
            'mean': 'MeanPooling',
            'max': 'MaxPooling',
            'gpo': 'GPOPooling',
            'emde': 'EMDE',
            'temde': 'TEMDE',
        }[module.removesuffix('_bert')]
        assert {type(p).__name__ for p in (similarity.image_pooling, similarity.text_pooling)} == {
            expected
        }
        assert (type(model.text_encoder).__name__ == 'BertWordEncoder') == ('bert' in module)
        return
    assert type(similarity.reasoning).__name__ == kind.upper()
    expected = {
        'temde': 'SketchGlobal',
        'self_attention': 'SelfAttentionGlobal',
        'noglobal': 'NoneType',
    }
    assert type(similarity.global_pooling).__name__ == expected[module]


@pytest.mark.parametrize(
    'name, millions',
    [
        # Measured on the reference: encoders at 8,481 words 2.10 + 2.54 + 8.15 M, and similarity.
        ('saf_self_attention_f30k', 2.10 + 2.54 + 8.15 + 4.73),
        ('sgr_self_attention_f30k', 2.10 + 2.54 + 8.15 + 5.32),
        ('saf_temde_coco', 2.10 + 2.54 + 8.15 + 2.98),
        ('sgr_temde_coco', 2.10 + 2.54 + 8.15 + 3.57),
    ],
)
def test_the_published_models_have_the_reference_s_number_of_parameters(name, millions, tmp_path):
    words = [f'word{number}' for number in range(8481 - len(SPECIAL_WORDS))]
    model = build(Config.fromfile(f'configs/temde/{name}.py'), tmp_path, words)
    total = sum(p.numel() for p in model.parameters()) / 1e6
    assert total == pytest.approx(millions, abs=0.02)


@pytest.mark.parametrize(
    'name, epochs, step, sketch',
    [
        ('saf_temde_f30k', 30, 20, 16),
        ('sgr_temde_f30k', 40, 30, 16),
        ('saf_temde_coco', 20, 10, 20),
        ('sgr_temde_coco', 20, 10, 20),
    ],
)
def test_the_recipes_are_the_published_ones(name, epochs, step, sketch):
    config = Config.fromfile(f'configs/temde/{name}.py')
    assert config.train_cfg.max_epochs == epochs
    assert config.param_scheduler == [dict(type='StepLR', gamma=0.1, step_size=step)]
    assert config.model.similarity.global_pooling.pooling == dict(
        type='TEMDE', partitions=sketch, centroids=8, inner_dims=8
    )
    assert config.optim_wrapper.optimizer == dict(type='Adam', lr=2e-4)
    assert config.optim_wrapper.clip_grad == dict(max_norm=2.0)
    assert config.train_dataloader.global_batch_size == 128
    assert config.model.loss == dict(type='TripletLoss', margin=0.2)


TABLES = [
    ('table1', 'coco'),
    ('table2', 'shapes'),
    ('table2', 'f30k'),
    ('table2', 'coco'),
    ('table4', 'shapes'),
    ('table4', 'f30k'),
    ('dual', 'shapes'),
    ('dual', 'f30k'),
]


@pytest.mark.parametrize('table, preset', TABLES)
def test_every_cell_of_the_tables_is_a_model_that_can_be_built(table, preset, tmp_path):
    ablation = read_table(f'configs/temde/ablations/{table}.py', preset)
    for row in ablation.rows:
        for stage in ablation.stages.values():
            build(row.config(stage), tmp_path)


# As the paper prints them; the rows of other papers, and of reports, are left out.
PAPER_TABLE_1 = """
SAF noglobal 53.7 90.4 0.663 39.8 80.0 0.532
SAF reproduced 55.6 90.7 0.677 40.3 80.3 0.536
SAF T-EMDE 56.7 90.7 0.682 40.3 80.4 0.537
SGR noglobal 54.2 90.3 0.668 39.3 79.3 0.525
SGR reproduced 55.7 90.3 0.677 39.8 79.9 0.531
SGR T-EMDE 57.0 91.0 0.685 40.0 80.1 0.533
SGRAF reproduced 57.9 91.6 0.697 41.8 81.5 0.550
SGRAF T-EMDE 59.1 91.8 0.703 41.8 81.7 0.551
"""
PAPER_TABLE_2 = """
SAF noglobal 71.1 91.6 96.3 0.803 54.1 80.7 87.3 0.660 76.2 95.5 98.1 0.845 61.5 89.3 95.1 0.736
SAF reproduced 74.9 93.9 97.1 0.833 56.3 81.8 88.0 0.676 77.2 95.7 98.5 0.853 62.1 89.7 95.4 0.741
SAF T-EMDE 75.2 94.2 97.1 0.829 57.1 82.2 88.3 0.682 78.3 95.7 98.5 0.858 62.3 89.7 95.2 0.745
SGR noglobal 52.8 83.7 92.8 0.664 49.6 77.3 85.1 0.618 76.6 95.8 98.4 0.848 60.9 89.0 95.1 0.731
SGR reproduced 76.3 93.2 96.9 0.835 55.2 80.7 88.0 0.666 76.9 95.5 98.5 0.849 61.5 89.4 95.4 0.737
SGR T-EMDE 77.5 93.1 97.2 0.845 56.9 82.0 87.5 0.679 77.1 95.9 98.5 0.852 61.6 89.5 95.1 0.737
SGRAF reproduced 77.5 94.4 97.0 0.849 58.4 83.2 89.0 0.693 78.9 96.2 98.9 0.864 63.6 90.4 95.8 0.752
SGRAF T-EMDE 78.8 94.4 97.5 0.858 59.6 83.6 89.2 0.702 79.6 96.3 98.7 0.868 63.5 90.4 95.6 0.752
"""
MODULES = {'none': 'noglobal', 'self-attention': 'reproduced', 'T-EMDE': 'T-EMDE'}


def printed_figures(printed, first, last):
    """Figures by model and global module; MRR in percent."""
    rows = [line.split() for line in printed.split('\n') if line]
    return {
        (model, module): [
            float(figure) * (100 if figure.startswith('0.') else 1)
            for figure in figures[first:last]
        ]
        for model, module, *figures in rows
    }


@pytest.mark.parametrize(
    'table, preset, expected',
    [
        ('table1', 'coco', printed_figures(PAPER_TABLE_1, 0, 6)),
        ('table2', 'shapes', printed_figures(PAPER_TABLE_2, 0, 8)),
        ('table2', 'f30k', printed_figures(PAPER_TABLE_2, 0, 8)),
        ('table2', 'coco', printed_figures(PAPER_TABLE_2, 8, 16)),
    ],
)
def test_the_figures_are_those_that_the_paper_prints(table, preset, expected):
    found = read_table(f'configs/temde/ablations/{table}.py', preset)
    models = [heading.split()[-2 - ('MRR' in heading)] for heading in found.paper_columns]
    seen = {}
    for row in found.rows:
        for model, figure in zip(models, row.paper, strict=True):
            seen.setdefault((model, MODULES[row.label]), []).append(figure)
    assert set(seen.pop(('SGRAF', 'noglobal'))) == {None}
    assert seen == {key: pytest.approx(figures) for key, figures in expected.items()}
    if preset != 'shapes':
        measured = [column.heading for column in found.columns]
        assert [name for name in measured if 'rsum' not in name] == found.paper_columns


@pytest.mark.parametrize('table, preset', TABLES)
def test_every_column_shows_a_metric_that_its_stage_measures(table, preset):
    found = read_table(f'configs/temde/ablations/{table}.py', preset)
    gallery = Gallery(torch.rand(10, 50), torch.arange(10).repeat_interleave(5))
    for column in found.columns:
        evaluators = found.rows[0].config(found.stages[column.stage]).test_evaluator
        measured = set()
        for evaluator in evaluators if isinstance(evaluators, list) else [evaluators]:
            names = retrieval_metrics(gallery, evaluator.get('folds', 1))
            prefix = f'{evaluator["prefix"]}/' if 'prefix' in evaluator else ''
            measured |= {prefix + name for name in names}
        assert set(column.metrics) <= measured, column.heading
