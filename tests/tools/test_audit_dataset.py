"""The audit of texts: planted leaks are found, and none in the embedded tasks or random labels."""

import json
import random
import sys

import pytest

from tools.analysis import audit_dataset
from tools.analysis.audit_dataset import audit, read_texts, type_of_question
from xmodal.datasets.entailment import SnliVeDataset
from xmodal.datasets.gqa import GqaDataset
from xmodal.datasets.lxmert import LxmertQuestionDataset
from xmodal.datasets.reasoning import Nlvr2Dataset
from xmodal.datasets.shapes.entailment import write_snli_ve
from xmodal.datasets.shapes.exporters import write_coco
from xmodal.datasets.shapes.gqa_files import write_gqa
from xmodal.datasets.shapes.reasoning import write_nlvr2
from xmodal.datasets.shapes.record import Record
from xmodal.datasets.shapes.scene import sample_scene
from xmodal.datasets.shapes.vqa import write_vqa
from xmodal.datasets.vqa import VqaDataset
from xmodal.engine.errors import ConfigError
from xmodal.evaluation.text_only import Texts, prior_scores

WORDS = 'a red blue green disc star ring left right above below of the two three'.split()
COLOURS = ('red', 'blue', 'green')


@pytest.fixture
def quick_reader(monkeypatch):
    """Lets the reader learn 100 steps, not 300: it finds what is planted as surely."""
    monkeypatch.setattr('xmodal.evaluation.text_only.STEPS', 100)


def texts(size, seed, planted):
    """Random words; with ``planted`` a share of the texts with label 1 say 'not'."""
    generator = random.Random(seed)
    labels = [generator.randrange(2) for _ in range(size)]
    words = [generator.sample(WORDS, 6) for _ in labels]
    for text, label in zip(words, labels, strict=True):
        if label and generator.random() < planted:
            text.append('not')
    groups = [str(i // 2) for i in range(size)]
    return Texts(words, [{str(label): 1.0} for label in labels], [''] * size, groups)


@pytest.mark.parametrize('seed', range(2))
@pytest.mark.parametrize('planted', [0.0, 0.3, 1.0])
def test_a_planted_leak_is_found_and_nothing_else(quick_reader, planted, seed):
    (found,) = audit(texts(1500, seed, planted), texts(800, 100 + seed, planted))
    assert found.leaks == (planted > 0)
    reader = found.prior + found.gain
    if planted == 1:
        assert reader > 99
    # Who hears 'not' half the time of `planted` cannot know more than this.
    assert reader < 50 + 50 * planted + 6


def write_questions(folder, split, form, planted, size):
    """Questions of two types in a file of VQA or GQA, whose answers are drawn at random.

    A colour is the right answer to "what colour …", "yes" or "no" to "is there …". With ``planted``
    the latter say "really" where the answer is yes.
    """
    generator = random.Random(f'{split} {form}')
    questions, annotations, gqa = [], [], {}
    for n in range(size):
        thing = ' '.join(generator.sample(WORDS, 3))
        if generator.random() < 0.5:
            kind, answers, structural = 'what colour', COLOURS, 'query'
        else:
            kind, answers, structural = 'is there', ('yes', 'no'), 'verify'
        answer, mistake = generator.sample(answers, 2)
        really = ' really' if planted and answer == 'yes' else ''
        text, image = f'{kind} {thing}{really}?', n // 2
        people = [{'answer': answer}] * 8 + [{'answer': mistake}] * 2
        questions.append({'image_id': image, 'question': text, 'question_id': n})
        types = {'question_type': kind, 'answer_type': 'other'}
        annotations.append({'question_id': n, 'answers': people, **types})
        gqa[str(n)] = {
            'question': text,
            'imageId': str(image),
            'answer': answer,
            'types': {'structural': structural, 'semantic': 'attr', 'detailed': ''},
        }
        (folder / f'{image}.jpg').touch()
    contents = {'vqa': {'questions': questions}, 'annotations': {'annotations': annotations}}
    for name, content in {**contents, 'gqa': gqa}.items():
        (folder / f'{name}_{split}.json').write_text(json.dumps(content))


def read_questions(folder, split, form):
    if form == 'gqa':
        return GqaDataset(f'gqa_{split}.json', data_root=str(folder))
    files = [f'{name}_{split}.json' for name in ('vqa', 'annotations')]
    return VqaDataset(*files, str(folder), image_name='{image_id}.jpg')


@pytest.mark.parametrize('planted', [False, True])
@pytest.mark.parametrize('form', ['vqa', 'gqa'])
def test_a_leak_of_one_type_of_question_is_found_there(quick_reader, tmp_path, form, planted):
    parts = []
    for split, size in (('train', 1200), ('test', 600)):
        write_questions(tmp_path, split, form, planted, size)
        parts.append(read_texts(read_questions(tmp_path, split, form), split))
    findings = {found.name: found for found in audit(*parts)}
    asked, what = ('is there', 'what colour') if form == 'vqa' else ('verify attr', 'query attr')
    assert set(findings) == {'all', asked, what}
    assert sum(findings[name].size for name in (asked, what)) == findings['all'].size == 600
    assert {name for name, found in findings.items() if found.leaks} == (
        {'all', asked} if planted else set()
    )
    if planted:
        assert findings[asked].prior + findings[asked].gain > 99


def test_the_prior_is_the_best_answer_of_each_type():
    """By a literal table: two of three people's answers, and types that the training lacks."""
    train = Texts(
        [['x']] * 5,
        [{'yes': 1.0}, {'yes': 0.3, 'no': 1.0}, {'no': 0.6}, {'red': 1.0}, {'red': 1.0}],
        ['is', 'is', 'is', 'what', 'choose attr'],
        list('abcde'),
    )
    answers = [{'no': 0.9}, {'yes': 1.0}, {'blue': 1.0}, {}, {'red': 1.0}, {'red': 0.6}]
    types = ['is', 'is', 'what', 'what', 'choose attr', 'how']
    test = Texts([['x']] * 6, answers, types, list('abcdef'))
    # Of 'is', "no" has 1.6 and "yes" 1.3; of all, "red" has 2.
    assert prior_scores(train, test) == [0.9, 0.0, 0.0, 0.0, 0.5, 0.6]


def test_types_come_from_the_data_set_or_from_the_first_words():
    text = 'is there a red disc'
    gqa = {'structural': 'query', 'semantic': 'attr', 'group': 'colour'}
    unknown = dict.fromkeys(gqa)
    assert type_of_question({'text': text, 'question_type': '', 'gqa': gqa}) == 'query attr colour'
    assert type_of_question({'text': text, 'question_type': 'is', 'gqa': unknown}) == 'is'
    assert type_of_question({'text': text, 'question_type': ''}) == '"is there …"'


def test_ten_answers_and_their_scores_are_audited_alike(tmp_path):
    write_questions(tmp_path, 'test', 'vqa', False, 40)
    people = read_texts(read_questions(tmp_path, 'test', 'vqa'), 'test')
    assert all(sorted(scores.values()) == [0.6, 1.0] for scores in people.scores)
    items = [
        {'question_id': n, 'img_id': str(n // 2), 'sent': ' '.join(words), 'label': scores}
        for n, (words, scores) in enumerate(zip(people.words, people.scores, strict=True))
    ]
    (tmp_path / 'lxmert.json').write_text(json.dumps(items))
    for n in range(20):
        (tmp_path / str(n)).touch()
    labels = read_texts(LxmertQuestionDataset('lxmert.json', data_root=str(tmp_path)), 'test')
    assert (labels.words, labels.scores) == (people.words, people.scores)
    assert {*labels.types} == {'"is there …"', '"what colour …"'}


@pytest.fixture(scope='module')
def drawn_world(tmp_path_factory):
    """Scenes with the texts of all tasks and empty files as images: large enough for an audit."""
    folder = tmp_path_factory.mktemp('drawn')
    (folder / 'images').mkdir()
    splits = {'train': [], 'val': [], 'test': []}
    for split, count in (('train', 400), ('test', 200)):
        for index in range(count):
            scene, image = sample_scene(3, split, index), f'{split}_{index}.jpg'
            boxes, areas = ((0, 0, 1, 1),) * len(scene.objects), (1,) * len(scene.objects)
            splits[split].append(Record(scene, ('',), boxes, areas, 32, image))
            (folder / image).touch()
            (folder / 'images' / image).touch()
    for write in (write_coco, write_snli_ve, write_nlvr2, write_vqa, write_gqa):
        write(folder, splits)
    return folder


def read_drawn(folder, task, split):
    root = str(folder)
    if task == 'entailment':
        return SnliVeDataset(
            f'snli_ve/snli_ve_{split}.jsonl', 'images/{Flickr30K_ID}.jpg', data_root=root
        )
    if task == 'nlvr2':
        name = 'test1' if split == 'test' else split
        return Nlvr2Dataset(f'nlvr2/{name}.json', '{url}', data_root=root)
    if task == 'gqa':
        name = 'testdev' if split == 'test' else split
        return GqaDataset(f'gqa/{name}_balanced_questions.json', data_root=root)
    files = [f'vqa/{name}_{split}.json' for name in ('questions', 'annotations')]
    return VqaDataset(*files, root, image_info=f'coco/captions_{split}.json')


@pytest.mark.parametrize('task', ['entailment', 'nlvr2', 'vqa', 'gqa'])
def test_the_embedded_tasks_pass_and_would_not_with_a_leak(drawn_world, task, request):
    sets = {split: read_drawn(drawn_world, task, split) for split in ('train', 'test')}
    train, test = (read_texts(dataset, split) for split, dataset in sets.items())
    assert not any(found.leaks for found in audit(train, test))
    # The best answer of the prior is told in half of the texts where another one is right.
    generator = random.Random(0)
    told = 'no' if task in ('vqa', 'gqa') else '0'
    for words, scores in zip(train.words + test.words, train.scores + test.scores, strict=True):
        if scores.get(told) == 1.0 and generator.random() < 0.5:
            words.append('indeed')
    request.getfixturevalue('quick_reader')
    assert any(found.leaks for found in audit(train, test))


@pytest.mark.parametrize(
    'config',
    [f'acerpe/{task}_shapes' for task in ('snli_ve', 'nlvr2', 'vqa')]
    + ['lxmert/gqa_shapes', 'lxmert/vqa_da_shapes'],
)
def test_the_tool_reads_the_data_of_a_config(
    quick_reader, relocated, tiny_world, tmp_path, monkeypatch, capsys, config
):
    relocated(f'configs/{config}.py', tiny_world).dump(tmp_path / 'config.py')
    monkeypatch.setattr(sys, 'argv', ['audit', str(tmp_path / 'config.py')])
    audit_dataset.main()
    assert 'bag of words' in capsys.readouterr().out


def test_mixed_training_sets_are_read_one_after_the_other(relocated, tiny_world):
    loader = relocated('configs/lxmert/vqa_da_shapes.py', tiny_world).train_dataloader
    dataset = audit_dataset.DATASETS.build(loader.dataset)
    vqa, gqa = (read_texts(part, 'part') for part in dataset.datasets)
    both = read_texts(dataset, 'both')
    assert all(a == b + c for a, b, c in zip(both, vqa, gqa, strict=True))
    assert 'is there' in vqa.types and 'verify obj' in gqa.types


def test_unbalanced_questions_are_left_out(drawn_world):
    names = (f'gqa/testdev_{name}_questions.json' for name in ('all', 'balanced'))
    every, balanced = (GqaDataset(name, data_root=str(drawn_world)) for name in names)
    assert len(every) > len(balanced)
    assert read_texts(every, 'test') == read_texts(balanced, 'test')


def test_tasks_without_labels_are_refused(relocated, tiny_world, tmp_path, monkeypatch):
    relocated('configs/acerpe/retrieval_shapes.py', tiny_world).dump(tmp_path / 'config.py')
    monkeypatch.setattr(sys, 'argv', ['audit', str(tmp_path / 'config.py')])
    with pytest.raises(ConfigError, match='whose samples have no text with a label or answers'):
        audit_dataset.main()


def test_questions_of_a_test_server_are_refused(tmp_path):
    write_questions(tmp_path, 'test', 'vqa', False, 4)
    options = {'data_root': str(tmp_path), 'image_name': '{image_id}.jpg', 'test_mode': True}
    dataset = VqaDataset('vqa_test.json', **options)
    with pytest.raises(ConfigError, match='test_dataloader.dataset: no answer'):
        read_texts(dataset, 'test_dataloader')
