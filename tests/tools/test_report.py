"""The command line of the report: the fusion layer of its heat maps, and words that are anchors."""

import json
import re
import sys
from itertools import islice
from pathlib import Path
from shutil import copytree

import pytest
import torch
from mmengine.config import Config, ConfigDict

from tools.analysis import report
from xmodal.apis import Inferencer
from xmodal.apis.location import measure_location
from xmodal.checkpoint_file import read_checkpoint
from xmodal.datasets.collate import stack_images
from xmodal.engine.launch import build_runner
from xmodal.errors import ConfigError, FileError
from xmodal.evaluation.first_captions import encode_first_captions
from xmodal.evaluation.queries import write_queries
from xmodal.registry import DATASETS
from xmodal.visualization.charts import read_scalars, select_curves


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    """A place for the run that all tests read: the first one of them trains it."""
    return tmp_path_factory.mktemp('report') / 'run'


@pytest.fixture
def run(tiny_config, trained, tmp_path, monkeypatch):
    """The config of a tested run of two fusion layers, and a function that writes its report."""
    tiny_config.work_dir = str(trained)
    tiny_config.model.backbone.fusion.depth = 2
    tiny_config.model.backbone.position.delta = 0.45  # some words are anchors
    tiny_config.train_cfg.max_epochs = 1
    tiny_config.default_hooks.logger.interval = 1
    tiny_config.test_cfg.update(save_rankings=f'{tiny_config.work_dir}/rankings.json')
    if not trained.exists():
        build_runner(tiny_config).train()
        tested = dict(load_from=str(trained / 'epoch_1.pth'), work_dir=str(trained / 'test'))
        build_runner(Config({**tiny_config, **tested, 'experiment_name': 'tested'})).test()
    tiny_config.work_dir = str(copytree(trained, tmp_path / 'run'))

    def write(*options):
        monkeypatch.setattr(sys, 'argv', ['report.py', tiny_config.work_dir, *options])
        report.main()
        return Path(tiny_config.work_dir, 'report.html').read_text(encoding='utf-8')

    return tiny_config, write


@pytest.fixture
def few_curves(monkeypatch):
    """Draws two of the curves, for which a page takes longer than for all else."""

    def select(scalars):
        return dict(islice(select_curves(scalars).items(), 2))

    monkeypatch.setattr('xmodal.visualization.report.select_curves', select)


def heat_maps(page):
    return re.findall(r'src="(\S+)" alt="(?:Grad-CAM|whole text)', page)


def test_the_heat_maps_are_those_of_the_layer_that_is_asked_for(run, few_curves):
    _, write = run
    first, last, default = write('--layer', '0'), write('--layer', '-1'), write()
    assert '<h2>Skills' not in first and '<p>1 epoch of training.' in first
    assert 'fusion layer 1 of 2' in first and 'fusion layer 2 of 2' in last
    assert len(heat_maps(first)) >= 8  # four texts, each as a whole and some of its words
    assert heat_maps(default) == heat_maps(first) != heat_maps(last)
    assert heat_maps(write('--layer', '1')) == heat_maps(last)
    with pytest.raises(ValueError, match='layer=2, expected -2 to 1: the number .* is 2'):
        write('--layer', '2')


def test_a_run_that_stopped_early_has_the_epochs_that_it_trained(run, few_curves):
    config, write = run
    (file,) = Path(config.work_dir).glob('*.py')
    file.write_text(file.read_text().replace('max_epochs=1', 'max_epochs=3'))
    assert '<p>1 of 3 epochs of training. Retrieval' in write()
    average = Path(config.work_dir, 'average.pth')  # as final_weights.py writes: of unknown epochs
    weights = read_checkpoint(f'{config.work_dir}/epoch_1.pth')['state_dict']
    torch.save({'state_dict': weights}, average)
    rankings = Path(config.work_dir, 'rankings.json')
    rankings.write_text(rankings.read_text().replace('epoch_1.pth', 'average.pth'))
    assert '<p>Retrieval' in write('--checkpoint', str(average))


def test_rankings_of_another_checkpoint_are_refused(run, few_curves):
    config, write = run
    file = Path(config.work_dir, 'rankings.json')
    rankings = json.loads(file.read_text())
    assert Path(rankings['checkpoint']).name == 'epoch_1.pth'
    file.write_text(json.dumps(rankings | {'checkpoint': 'moved/epoch_1.pth', 'folds': {'': 5}}))
    assert 'the mean of 5 folds of 2 images that are searched separately.</p>' in write()
    file.write_text(json.dumps(rankings | {'checkpoint': 'run/best.pth'}))
    with pytest.raises(ConfigError, match='has the results of run/best.pth, .*epoch_1.pth: give'):
        write()


def test_losses_are_shown_by_iteration_and_metrics_of_the_validation_by_epoch(run, monkeypatch):
    config, write = run
    assert 'Losses and statistics by iteration, metrics of the validation by epoch' in write()
    steps = {
        name: [step for step, _ in points]
        for name, points in read_scalars(Path(config.work_dir)).items()
    }
    assert steps['loss'] == [1, 2, 3, 4]
    assert steps['mean_recall'] == [1]
    monkeypatch.setattr('xmodal.visualization.report.select_curves', lambda _: {})
    assert 'This run logged no value twice' in write()  # in place of an empty section


def test_the_radar_is_there_where_the_skills_were_tested(run, few_curves):
    config, write = run
    shares = {'colour': 81.25, 'place': -3.5, 'number': 12.5}
    metrics = {
        f'{way}/attainable/{k}': v for way in ('vectors', 'fusion') for k, v in shares.items()
    }
    metrics |= {'vectors/attainable/mean': 99.75, 'chance/colour': 50.0}
    Path(config.work_dir, 'skills.json').write_text(json.dumps(metrics))
    page = write()
    assert '<h2>Skills' in page
    rows = re.findall(r'<tr><td>(\w+)</td><td>(\S+)</td><td>(\S+)</td></tr>', page)
    assert rows == [
        ('colour', '81.2', '81.2'),
        ('place', '-3.5', '-3.5'),
        ('number', '12.5', '12.5'),
    ]
    assert '99.8' not in page
    with pytest.raises(FileNotFoundError):
        write('--skills', f'{config.work_dir}/other.json')
    queries = Path(config.work_dir, 'skills.queries.npz')
    write_queries(queries, {}, f'{config.work_dir}/epoch_1.pth')
    assert write() == page
    write_queries(queries, {}, 'run/epoch_3.pth')
    with pytest.raises(ConfigError, match='skills.json has the results of epoch_3.pth, .* again'):
        write()


def test_deletion_curves_are_drawn_where_they_were_measured(run, few_curves):
    config, write = run
    heading = '<h2>Do maps find what a match rests on?</h2>'
    assert heading not in write()
    file = Path(config.work_dir, 'deletion.json')
    file.write_text(json.dumps({'Grad-CAM': [0.9, 0.1], 'random order': [0.9, 0.5, 0.1]}))
    page = write()
    assert heading in page
    curves = json.loads(file.read_text())
    file.write_text(json.dumps({'checkpoint': 'epoch_1.pth', **curves}))
    assert write() == page
    file.write_text(json.dumps({'checkpoint': 'epoch_3.pth', **curves}))
    with pytest.raises(ConfigError, match='deletion.json has the results of epoch_3.pth, '):
        write()
    file.write_text(json.dumps({'Grad-CAM': [0.9]}))
    with pytest.raises(FileError, match=r'Grad-CAM.* a list of at least two numbers'):
        write()
    file.unlink()


def test_it_shows_how_well_maps_find_the_objects_of_words(run, few_curves, tiny_world, monkeypatch):
    config, write = run
    page = write()
    assert '<h2>Do maps find what words name?</h2>' in page
    inferencer = Inferencer(config, f'{config.work_dir}/epoch_1.pth')
    dataset = DATASETS.build(config.test_dataloader.dataset)
    file = tiny_world / 'coco/instances_test.json'
    rows = range(len(dataset))
    captions = encode_first_captions(inferencer.model, dataset, rows, stack_images)
    location = measure_location(inferencer.model, captions, [file])
    assert location.among
    named = {f'{name},\namong named objects': aucs for name, aucs in location.among.items()}
    shown = re.findall(r'<tr><td>([^<]+)</td><td>([\d.]+)</td><td>([\d. ]*)</td></tr>', page)
    assert shown == [
        (name, f'{mean:.2f}', ''.join(f'{area:.2f} ' for area in groups))
        for name, (mean, *groups) in (location.aucs | named).items()
    ]
    names = [name for name, *_ in shown if 'among' not in name]
    assert names[-2:] == ['Grad-CAM, layer 1 of 2', 'nearness to the middle, blind']
    monkeypatch.setattr(report, 'find_instances', lambda dataset: [])
    assert '<h2>Do maps find' not in write()


def test_the_instances_of_the_embedded_world_are_found(tiny_world):
    dataset = ConfigDict(data_root=str(tiny_world), ann_file='albef/test.json')
    assert report.find_instances(dataset) == [tiny_world / 'coco/instances_test.json']
    assert report.find_instances(ConfigDict(dataset, ann_file='albef/other.json')) == []
    assert report.find_instances(ConfigDict(dataset, ann_file=['albef/test.json'])) == []


def test_the_words_of_a_text_that_are_anchors_are_red(run, few_curves):
    config, write = run
    inferencer = Inferencer(config, f'{config.work_dir}/epoch_1.pth')
    rankings = json.loads(Path(config.work_dir, 'rankings.json').read_text())
    lines = re.findall(r'“([^”]+)”</p><p class="pieces">(.+?)</p>', write())
    assert len(lines) == 4
    colours = set()
    for text, line in lines:
        image = rankings['images'][rankings['text_to_image'][rankings['texts'].index(text)]]
        expected = [
            (word, bool(patches.any())) for word, patches in inferencer.anchors(image, text)[:-1]
        ]
        found = re.findall(r'<span( class="anchor")?>(.+?)</span>', line)
        assert [(word, bool(marked)) for marked, word in found] == expected
        colours |= {is_anchor for _, is_anchor in expected}
    assert colours == {True, False}


@pytest.mark.parametrize(
    ('config', 'key'),
    [
        ('acerpe/pretrain_shapes', 'test_cfg.save_rankings'),
        ('emkum/tte_post_shapes', 'test_cfg.loops.retrieval.save_rankings'),
    ],
)
def test_what_writes_the_rankings_is_found_among_several_tests(config, key):
    assert report.rankings_key(Path(f'configs/{config}.py')) == key


def test_a_run_of_another_task_is_not_sent_to_a_test_that_writes_no_rankings():
    with pytest.raises(ConfigError, match='vqa_shapes.py: the report shows retrieval'):
        report.rankings_key(Path('configs/acerpe/vqa_shapes.py'))
