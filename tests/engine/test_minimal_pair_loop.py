"""The loop of minimal pairs, on the files of the embedded world."""

import json

import cv2
import numpy as np
import pytest
import torch
from minimal_pair_files import ATTRIBUTION, ORDER, RELATION, SUGARCREPE, VSR, WINOGROUND
from mmengine.config import Config

from xmodal.engine.blind import blind
from xmodal.engine.launch import build_runner
from xmodal.engine.loops.minimal_pairs import print_metrics
from xmodal.engine.queries import keep_queries, query_results
from xmodal.engine.wrappers import unwrap
from xmodal.evaluation.queries import figure

SKILLS = ('attribute', 'relation', 'count', 'binding', 'object')


@pytest.fixture
def runner(tiny_config, relocated, tiny_world):
    """A random model with the test of the config of skills."""
    torch.manual_seed(0)
    loop = relocated('configs/acerpe/skills_shapes.py', tiny_world).test_cfg
    loop.dataloader.update(num_workers=0, batch_size=7)
    tiny_config.test_cfg = loop
    return build_runner(tiny_config)


@torch.no_grad()
def literal_hits(model, world):
    """Whether each true caption wins, pair by pair, of vectors and of fusion."""
    from xmodal.datasets.image_file import read_image

    hits = {}
    for skill in SKILLS:
        for key, item in json.loads((world / f'skills/{skill}.json').read_text()).items():
            pixels = torch.from_numpy(read_image(world / 'skills/images' / item['filename']))
            pixels = (pixels.permute(2, 0, 1)[None].float() - 127.5) / 63.75
            image = model.encode_image(pixels)
            scores = []
            for caption in (item['caption'], item['negative_caption']):
                text = model.encode_text(*model.data_preprocessor.tokenize([caption]))
                cosine = float(image.embedding[0] @ text.embedding[0])
                fused = model.match(image.tokens, text.tokens, torch.tensor([[0, 0]]))
                scores.append((cosine, float(fused)))
            (cosine, match), (false_cosine, false_match) = scores
            hits[f'{skill}-{key}'] = cosine > false_cosine, match > false_match
    return hits


def test_it_scores_each_image_with_its_texts_by_vectors_and_by_fusion(runner, tiny_world):
    keep_queries(runner.test_loop)
    figures = runner.test()
    hits = literal_hits(unwrap(runner.model).eval(), tiny_world)
    results = query_results(runner.test_loop)
    (queries,) = results.values()
    assert sorted(queries.ids.tolist()) == sorted(hits)
    for skill in SKILLS:
        for way, name in enumerate(('vectors', 'fusion')):
            of_skill = [hit[way] for key, hit in hits.items() if key.startswith(skill)]
            expected = 100 * sum(of_skill) / len(of_skill)
            assert figures[f'{name}/{skill}'] == pytest.approx(expected)
            assert figure(results, f'{name}/{skill}') == pytest.approx(expected)
    assert figures['chance/mean'] == 50


def test_without_texts_all_tie_which_counts_against_the_model(runner):
    blind(runner.test_loop, 'text', unwrap(runner.model).data_preprocessor)
    assert runner.test()['vectors/mean'] == 0


def test_a_model_without_a_matching_head_has_vectors_alone(tiny_config, runner):
    tiny_config.model.heads.itm = None
    tiny_config.work_dir += '_vectors'
    tiny_config.experiment_name = 'vectors'
    figures = build_runner(tiny_config).test()
    assert {name.split('/')[0] for name in figures} == {'vectors', 'chance'}


def test_the_table_has_a_row_for_the_metric_of_a_plug_in(capsys):
    print_metrics({'vectors/count': 50.0, 'ece': 7.5})
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if '│' in line]
    assert rows == [['│', 'count', '│', '50.0', '│', '│'], ['│', 'ece', '│', '│', '7.5', '│']]


def to_lines(*items):
    return ''.join(json.dumps(item) + '\n' for item in items)


# By config: its annotation files, its images, and the figures that it must have.
CATEGORIES = (
    'replace_obj',
    'replace_att',
    'replace_rel',
    'swap_obj',
    'swap_att',
    'add_obj',
    'add_att',
)
PROBES = {
    'sugarcrepe': (
        {f'sugarcrepe/{name}.json': json.dumps(SUGARCREPE) for name in CATEGORIES},
        [f'coco/val2017/{item["filename"]}' for item in SUGARCREPE.values()],
        CATEGORIES,
    ),
    'aro_relation': (
        {'aro/visual_genome_relation.json': json.dumps(RELATION)},
        ['aro/images/2322999.jpg'],
        ['to the left of'],
    ),
    'aro_attribution': (
        {'aro/visual_genome_attribution.json': json.dumps(ATTRIBUTION * 25)},
        ['aro/images/1.jpg'],
        ['white_open'],
    ),
    'aro_order': (
        {'aro/coco_order.json': json.dumps(ORDER)},
        [f'coco/{ORDER[0]["image"]}'],
        ['order'],
    ),
    'winoground': (
        {'winoground/examples.jsonl': to_lines(WINOGROUND)},
        [f'winoground/images/ex_0_img_{side}.png' for side in (0, 1)],
        ['text', 'image', 'group'],
    ),
    'vsr': (
        {'vsr/random/test.jsonl': to_lines(VSR, {**VSR, 'image': 'b.jpg', 'label': 0})},
        [f'vsr/images/{name}' for name in (VSR['image'], 'b.jpg')],
        ['accuracy', 'auc'],
    ),
}


@pytest.mark.parametrize('name', PROBES)
def test_the_config_of_a_public_set_reads_its_files_and_fills_each_figure(
    name, tiny_config, tmp_path
):
    files, images, expected = PROBES[name]
    for file, content in files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(content)
    for seed, image in enumerate(images):
        (tmp_path / image).parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(seed).integers(0, 255, (20, 30, 3), np.uint8)
        cv2.imwrite(str(tmp_path / image), pixels)
    config = Config.fromfile(f'configs/acerpe/{name}.py')
    config.test_dataloader.num_workers = 0
    config.test_dataloader.dataset.data_root = str(tmp_path)
    for transform in config.test_dataloader.dataset.pipeline:
        if transform.type == 'ResizeImage':
            transform.size = 32
    for key in ('test_dataloader', 'test_evaluator', 'test_cfg'):
        tiny_config[key] = config[key]
    tiny_config.experiment_name = name
    figures = build_runner(tiny_config).test()
    for way in ('vectors', 'fusion', 'chance'):
        assert {f'{way}/{figure}' for figure in expected} <= figures.keys()
