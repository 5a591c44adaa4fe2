"""GQA's grounding score, against a literal reading of its official evaluation."""

import json
import random

import pytest
import torch

from xmodal.evaluation import GqaMetric
from xmodal.evaluation.gqa_grounding import gqa_grounding


def official(question, graph, cells):
    """The official script's arithmetic, step by step; cells are ((x0, y0, x1, y1), attention)."""
    regions = []
    for part in ('question', 'fullAnswer'):
        for pointer in question['annotations'][part].values():
            obj = graph['objects'][pointer]
            x0, x1 = (float(x) / graph['width'] for x in (obj['x'], obj['x'] + obj['w']))
            y0, y1 = (float(y) / graph['height'] for y in (obj['y'], obj['y'] + obj['h']))
            regions.append((x0, y0, x1, y1))
    if any('scene' in step for step in question['semantic']):
        regions.append((0, 0, 1, 1))
    scores = []
    for region in regions:
        for cell, attention in cells:
            shared = 1.0
            for low, high in ((0, 2), (1, 3)):
                length = min(cell[high], region[high]) - max(cell[low], region[low])
                shared *= length if length > 0 else 0
            rate = shared / ((cell[2] - cell[0]) * (cell[3] - cell[1]))
            scores.append(attention * rate)
    return sum(scores)


def random_world(seed, count=20):
    """Questions, scene graphs, and attentions as ``attentions.json`` has them."""
    rng = random.Random(seed)
    graphs, questions, attentions = {}, {}, {}
    for index in range(count):
        width, height = rng.randint(50, 90), rng.randint(30, 60)
        names = [f'{index}{letter}' for letter in 'abcd']
        graphs[f'i{index}'] = {
            'width': width,
            'height': height,
            'objects': {
                name: {
                    'x': rng.randint(0, width // 2),
                    'y': rng.randint(0, height // 2),
                    'w': rng.randint(1, width // 2),
                    'h': rng.randint(1, height // 2),
                }
                for name in names
            },
        }
        questions[str(index)] = {
            'imageId': f'i{index}',
            'isBalanced': rng.random() < 0.7,
            'annotations': {
                'question': {str(i): rng.choice(names) for i in range(rng.randint(0, 3))},
                'answer': {'0': rng.choice(names)},  # which the script does not read
                'fullAnswer': {str(i): rng.choice(names) for i in range(rng.randint(0, 2))},
            },
            # Of a question about the whole scene: the script looks at the keys of the steps.
            'semantic': [{'operation': 'select', 'dependencies': [], 'argument': 'scene'}],
        }
        weights = [rng.random() for _ in range(rng.randint(1, 6))]
        cells = []
        for weight in weights:
            (x0, x1), (y0, y1) = (sorted(rng.uniform(0, 1) for _ in 'ab') for _ in 'xy')
            cells.append([x0, y0, x1, y1, weight / sum(weights)])
        attentions[str(index)] = cells
    return questions, graphs, attentions


def samples_of(questions, attentions):
    samples = []
    for index, (name, question) in enumerate(questions.items()):
        parts = (question['annotations'][part] for part in ('question', 'fullAnswer'))
        samples.append(
            {
                'sample_index': index,
                'question_id': name,
                'image_path': f'images/{question["imageId"]}.jpg',
                'predicted': 'yes',
                'answers': ['yes'],
                'attention': torch.tensor(attentions[name], dtype=torch.float64),
                'gqa': {
                    'balanced': question['isBalanced'],
                    'objects': [pointer for part in parts for pointer in part.values()],
                },
            }
        )
    return samples


@pytest.fixture
def make_metric(tmp_path):
    def make(graphs):
        file = tmp_path / 'val_sceneGraphs.json'
        file.write_text(json.dumps(graphs))
        return GqaMetric(scene_graphs=str(file))

    return make


def evaluate(metric, samples):
    metric.process({}, samples)
    return metric.evaluate(len(samples))


@pytest.mark.parametrize('seed', range(5))
def test_it_is_the_score_of_the_official_script(make_metric, seed):
    questions, graphs, attentions = random_world(seed)
    scores = []
    for name, question in questions.items():
        if question['isBalanced']:
            cells = [((x0, y0, x1, y1), a) for x0, y0, x1, y1, a in attentions[name]]
            scores.append(official(question, graphs[question['imageId']], cells))
    expected = 100 * sum(scores) / len(scores)
    assert max(scores) > 0
    actual = evaluate(make_metric(graphs), samples_of(questions, attentions))
    assert actual['gqa/grounding'] == pytest.approx(expected)
    assert set(actual) == {'gqa/accuracy', 'gqa/grounding'}


def test_a_small_example():
    # Half of the first region, with 0.6, is on the object, and all of the second, with 0.4.
    attention = torch.tensor([[0, 0, 0.5, 0.5, 0.6], [0.25, 0, 0.5, 1, 0.4]])
    obj = torch.tensor([[0.25, 0, 1, 1]])
    assert gqa_grounding(attention, obj) == pytest.approx(0.7)
    assert gqa_grounding(attention, torch.cat([obj, obj])) == pytest.approx(1.4)  # named twice
    assert gqa_grounding(attention, obj[:0]) == 0
    assert gqa_grounding(torch.tensor([[0.5, 0.5, 0.5, 0.7, 1.0]]), obj) == 0  # without area


def test_without_scene_graphs_there_is_no_grounding_score():
    questions, _, attentions = random_world(0)
    assert set(evaluate(GqaMetric(), samples_of(questions, attentions))) == {'gqa/accuracy'}


def test_a_missing_file_is_an_error_at_once():
    with pytest.raises(FileNotFoundError, match='evaluator.scene_graphs: nowhere.json'):
        GqaMetric(scene_graphs='nowhere.json')


@pytest.mark.parametrize(
    'key, value, message',
    [
        ('attention', None, r'set model\.report_attention=True'),
        ('gqa', {'objects': None}, 'question 0 has no "annotations"'),
        ('gqa', {'objects': ['9x']}, 'names object 9x of image i0, which .*sceneGraphs.json does'),
        ('image_path', 'images/other.jpg', 'of image other, which .* of the same split'),
    ],
)
def test_what_it_needs_is_named_where_it_is_missing(make_metric, key, value, message):
    questions, graphs, attentions = random_world(0, count=1)
    (sample,) = samples_of(questions, attentions)
    sample['gqa'] = {'objects': ['0a']}
    changed = {**sample, key: value}
    if value is None:
        changed.pop(key)
    with pytest.raises(ValueError, match=message):
        make_metric(graphs).process({}, [changed])


def test_a_file_of_another_layout_is_named(make_metric):
    questions, _, attentions = random_world(0, count=1)
    metric = make_metric({'i0': {'objects': {}}})
    with pytest.raises(ValueError, match="sceneGraphs.json cannot be read after 0 images.*'width'"):
        metric.process({}, samples_of(questions, attentions))
