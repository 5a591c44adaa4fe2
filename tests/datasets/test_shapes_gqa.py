"""The embedded world's questions as GQA, and LXMERT's pre-training data."""

import json
from collections import Counter
from pathlib import Path

import pytest

from xmodal.datasets import GqaDataset, LxmertPretrainDataset, VqaDataset
from xmodal.datasets.shapes.exporters import TASK_WORDS
from xmodal.datasets.shapes.gqa import generate_gqa_items
from xmodal.datasets.shapes.gqa_files import annotate
from xmodal.datasets.shapes.grammar import vocabulary
from xmodal.datasets.shapes.phrasing import Mention
from xmodal.datasets.shapes.questions import answer_list
from xmodal.datasets.shapes.scene import sample_scene

SYNONYMS = {'little': 'small', 'big': 'large', 'plain': 'solid', 'spotted': 'dotted'}


@pytest.fixture(scope='module')
def questions():
    """Scenes with their balanced questions and the questions that these entail."""
    return [
        (scene, item)
        for index in range(300)
        for scene in [sample_scene(0, 'train', index)]
        for question in generate_gqa_items('train', scene)
        for item in (question, *question.entails)
    ]


def fits(phrase, obj):
    """Whether every word of a noun phrase is true of an object."""
    words = {SYNONYMS.get(word, word) for word in phrase.split()} - {'a', 'an', 'the', 'thing'}
    return words <= {obj.shape, obj.colour, obj.size, obj.texture}


def test_logical_questions_are_answered_by_the_scene(questions):
    logical = [(scene, item) for scene, item in questions if item.structural == 'logical']
    for scene, item in logical:
        phrases = item.text.removeprefix('is there ')
        word = 'and' if ' and ' in phrases else 'or'
        present = [any(fits(p, o) for o in scene.objects) for p in phrases.split(f' {word} ')]
        is_true = all(present) if word == 'and' else any(present)
        assert item.answer == ('yes' if is_true else 'no')
    assert len(logical) > 100


def test_comparisons_are_answered_by_the_scene(questions):
    comparisons = [(scene, item) for scene, item in questions if item.structural == 'compare']
    for scene, item in comparisons:
        phrases, _, attribute = item.text.removeprefix('are the ').partition(' the same ')
        pair = [
            obj
            for phrase in phrases.split(' and the ')
            for obj in scene.objects
            if fits(phrase, obj)
        ]
        assert len(pair) == 2
        is_equal = len({getattr(obj, attribute) for obj in pair}) == 1
        assert item.answer == ('yes' if is_equal else 'no')
    assert len(comparisons) > 30


def test_choices_are_between_the_answer_and_an_attribute_of_another_object(questions):
    for scene, item in questions:
        if item.structural == 'choose':
            assert item.answer in item.valid and len(set(item.valid)) == 2
            assert all(option in item.text for option in item.valid)
            assert set(item.valid) <= {v for o in scene.objects for v in (o.colour, o.shape)}


def test_entailed_questions_agree_with_the_answer_of_their_query(questions):
    for _, item in questions:
        if item.structural == 'query' and item.semantic == 'attr':
            yes, no = item.entails
            assert (yes.answer, no.answer) == ('yes', 'no')
            assert yes.text.endswith(f' {item.answer}') and not no.text.endswith(item.answer)
        elif item.structural == 'query':
            (entailed,) = item.entails
            assert entailed.answer == 'yes' and entailed.text.endswith(f' {item.answer}')
        else:
            assert not item.entails


def test_yes_and_no_are_equally_frequent_for_each_type(questions):
    counts = Counter(
        (item.structural, item.answer) for _, item in questions if item.answer in ('yes', 'no')
    )
    for structural in ('verify', 'logical', 'compare'):
        yes, no = counts[structural, 'yes'], counts[structural, 'no']
        # Three standard deviations of a fair coin; entailed questions have more yes.
        margin = 0.1 if structural == 'verify' else 1.5 / (yes + no) ** 0.5
        assert abs(yes / (yes + no) - 0.5) < margin, structural


def test_all_words_and_answers_are_known(questions):
    words = {*vocabulary(), *(word for words in TASK_WORDS for word in words)}
    known_answers = set(answer_list())
    for _, item in questions:
        assert words.issuperset(item.text.split())
        assert item.answer in item.valid and known_answers.issuperset(item.valid)
    assert {item.structural for _, item in questions} == {
        'query',
        'verify',
        'logical',
        'choose',
        'compare',
    }


def test_the_same_scene_gives_the_same_questions():
    scene = sample_scene(0, 'train', 3)
    assert generate_gqa_items('train', scene) == generate_gqa_items('train', scene)


def test_files_have_the_format_of_gqa(tiny_world):
    folder = tiny_world / 'gqa'
    all_questions = json.loads((folder / 'testdev_all_questions.json').read_text())
    balanced = json.loads((folder / 'testdev_balanced_questions.json').read_text())
    assert balanced == {key: item for key, item in all_questions.items() if item['isBalanced']}
    assert set(all_questions) == set(json.loads((folder / 'testdev_choices.json').read_text()))
    for item in all_questions.values():
        assert set(item) == {
            'question',
            'imageId',
            'answer',
            'fullAnswer',
            'isBalanced',
            'types',
            'groups',
            'entailed',
            'equivalent',
            'annotations',
        }
        assert set(item['entailed']) <= set(all_questions)
    dataset = GqaDataset(
        'testdev_all_questions.json',
        data_root=str(folder),
        pipeline=[dict(type='LoadRegions', store=str(tiny_world / 'regions/store'))],
        test_mode=True,
    )
    assert len(dataset) == len(all_questions)
    assert dataset[0]['img_path'].endswith('test_000000.jpg')


def test_annotations_name_objects_that_fit_the_words_at_their_positions(tiny_world):
    folder, seen = tiny_world / 'gqa', Counter()
    graphs = json.loads((folder / 'testdev_sceneGraphs.json').read_text())
    questions = json.loads((folder / 'testdev_all_questions.json').read_text())
    for item in questions.values():
        objects = graphs[item['imageId']]['objects']
        texts = {'question': item['question'], 'answer': item['answer']}
        for part, text in {**texts, 'fullAnswer': item['fullAnswer']}.items():
            words = text.rstrip('?.').split()
            for position, name in item['annotations'][part].items():
                first, _, end = position.partition(':')
                phrase = words[int(first) : int(end or int(first) + 1)]
                obj = objects[name]
                said = {SYNONYMS.get(word, word) for word in phrase} - {'thing'}
                assert said and said <= {obj['name'], *obj['attributes']}
                seen[part] += 1
    assert len(seen) == 3 and min(seen.values()) > 5


def test_every_named_object_that_the_scene_has_is_annotated(tiny_world):
    folder, count = tiny_world / 'gqa', Counter()
    for item in json.loads((folder / 'testdev_all_questions.json').read_text()).values():
        kind = item['types']['structural'], item['types']['semantic'], item['answer']
        count[kind] += 1
        named, where = (item['annotations'][part] for part in ('question', 'fullAnswer'))
        match kind:
            case ('verify', 'obj', answer):
                assert len(named) == (answer == 'yes')
            case ('verify', 'rel', _) | ('compare', _, _):
                assert len(set(named.values())) == 2
            case ('logical', _, answer):
                least, most = (0, 1) if answer == 'no' else (1, 2)
                assert least <= len(named) <= most
            case ('query', 'rel', _):
                # The sentence names what the answer is, and then what the question names.
                answer = [*item['annotations']['answer'].values()]
                assert [*where.values()] == [*answer, *named.values()] and len(answer) == 1
            case ('query' | 'choose', 'attr', _):
                assert [*where.values()] == [*named.values()] and 1 <= len(named) <= 2
        assert bool(where) == (item['answer'] not in ('yes', 'no'))
    assert len({structural for structural, _, _ in count}) == 5


def test_a_phrase_is_found_after_the_one_before_it():
    red, other = sample_scene(0, 'train', 0).objects[:2]
    mentions = (Mention('big red disc', None), Mention('red disc', red), Mention('star', other))
    text = 'is there a big red disc or a red disc left of the star'
    assert annotate(text, mentions, {red: '7', other: '8'}) == {'8:10': '7', '13': '8'}


def test_scene_graphs_have_the_boxes_and_relations_of_the_scene(tiny_world):
    graphs = json.loads((tiny_world / 'gqa/testdev_sceneGraphs.json').read_text())
    coco = json.loads((tiny_world / 'coco/instances_test.json').read_text())
    files = {image['id']: image['file_name'] for image in coco['images']}
    boxes = {}
    for instance in coco['annotations']:
        boxes.setdefault(Path(files[instance['image_id']]).stem, []).append(instance['bbox'])
    assert boxes == {
        image: [[o[key] for key in 'xywh'] for o in graph['objects'].values()]
        for image, graph in graphs.items()
    }
    assert {(graph['width'], graph['height']) for graph in graphs.values()} == {(32, 32)}
    everything = [name for graph in graphs.values() for name in graph['objects']]
    assert len(everything) == len(set(everything))
    related = 0
    for graph in graphs.values():
        for obj in graph['objects'].values():
            for relation in obj['relations']:
                other = graph['objects'][relation['object']]
                related += relation['name'] == 'left of'
                if relation['name'] == 'left of':
                    assert obj['x'] + obj['w'] / 2 < other['x'] + other['w'] / 2
    assert related


def test_pre_training_has_the_questions_of_the_tasks(tiny_world):
    pipeline = [dict(type='LoadRegions', store=str(tiny_world / 'regions/store'))]
    root = str(tiny_world)
    sentences = list(LxmertPretrainDataset('lxmert/train.json', root, pipeline=pipeline))
    by_source = {
        name: [s for s in sentences if s['source'] == name] for name in ('mscoco', 'vqa', 'gqa')
    }
    assert len(by_source['mscoco']) == 5 * 32
    vqa = VqaDataset(
        'vqa/questions_train.json',
        answer_file='vqa/annotations_train.json',
        image_info='coco/captions_train.json',
        data_root=root,
        weights='score',
        max_words=None,
    )
    gqa = GqaDataset(
        'gqa/train_balanced_questions.json', data_root=root, pipeline=pipeline, max_words=None
    )
    for sentences_of_task, questions in ((by_source['vqa'], vqa), (by_source['gqa'], gqa)):
        for sentence, question in zip(sentences_of_task, questions, strict=True):
            assert sentence['text'] == question['text']
            answers = [
                answer.replace('grey', 'gray') if answer == 'grey' else answer
                for answer in question['answers']
            ]
            assert sentence['answers'] == answers
            assert sentence['answer_weights'] == pytest.approx(question['answer_weights'])
    table = set(json.loads((tiny_world / 'lxmert/answer_list.json').read_text()))
    assert all(table.issuperset(sentence['answers']) for sentence in sentences)
    assert len(table) == 161


def test_the_stems_of_all_images_are_different(tiny_world):
    stems = [file.stem for file in (tiny_world / 'images').rglob('*.png')]
    assert len(stems) == len(set(stems)) == 32 + 6 + 10
