"""Tests on two processes give the numbers of one, also when the set does not divide."""

import json
import pickle

import pytest
import torch
from ranks import run_on_ranks
from test_train_and_test import run_script

from xmodal.datasets.refer_files import read_plain_pickle
from xmodal.engine.launch import build_runner


def on_ranks(config_file, checkpoint, folder):
    arguments = config_file, checkpoint, '--work-dir', folder / 'two'
    run_on_ranks('tools/test.py', *arguments, folder=folder)


def by_script(config_file, checkpoint, folder):
    arguments = config_file.name, checkpoint, 2, '--work-dir', 'two'
    run_script('tools/dist_test.sh', *arguments, folder=folder)


def check_one_and_two(config, tmp_path, saved, test=on_ranks):
    """Tests the same weights on one and on two processes: metrics, and what ``saved`` names."""
    config.load_from = str(tmp_path / 'start.pth')
    config.experiment_name = 'start'
    torch.save(build_runner(config).model.state_dict(), config.load_from)
    section, key = saved
    config[section][key] = str(tmp_path / 'one.json')
    config.experiment_name = 'one process'
    metrics = build_runner(config).test()

    config[section][key] = str(tmp_path / 'two.json')
    config.dump(tmp_path / 'config.py')
    test(tmp_path / 'config.py', config.load_from, tmp_path)
    (log,) = (tmp_path / 'two').glob('*/*.json')
    logged = json.loads(log.read_text().splitlines()[-1])
    assert {name: logged[name] for name in metrics} == pytest.approx(metrics)
    one, two = (json.loads((tmp_path / f'{name}.json').read_text()) for name in ('one', 'two'))
    assert one == two
    return one


def test_two_processes_ground_as_one(shrink, tiny_world, tmp_path):
    config = shrink('configs/acerpe/grounding_shapes.py')
    references = read_plain_pickle(tiny_world / 'refcoco+/refs(unc).p')
    shown = [reference for reference in references if reference['split'] != 'train']
    while sum(len(reference['sentences']) for reference in shown) % 2 == 0:
        shown[0]['sentences'].pop()
    file = tmp_path / 'odd.p'
    file.write_bytes(pickle.dumps([references[0], *shown], protocol=2))
    config.test_dataloader.dataset.ann_file = str(file)
    config.test_dataloader.batch_size = 7
    boxes = check_one_and_two(config, tmp_path, ('test_evaluator', 'save_predictions'))
    assert len(boxes) % 2 == 1


@pytest.mark.parametrize(('num_images', 'test'), [(9, by_script), (1, on_ranks)])
def test_two_processes_retrieve_as_one(shrink, tiny_world, tmp_path, num_images, test):
    config = shrink('configs/acerpe/retrieval_shapes.py')
    content = json.loads((tiny_world / 'karpathy/dataset_shapes.json').read_text())
    others = [image for image in content['images'] if image['split'] != 'test']
    shown = [image for image in content['images'] if image['split'] == 'test'][:num_images]
    content['images'] = others + shown
    (tmp_path / 'odd.json').write_text(json.dumps(content))
    config.test_dataloader.dataset.ann_file = str(tmp_path / 'odd.json')
    config.test_dataloader.batch_size = 2
    rankings = check_one_and_two(config, tmp_path, ('test_cfg', 'save_rankings'), test)
    assert len(rankings['images']) == num_images
