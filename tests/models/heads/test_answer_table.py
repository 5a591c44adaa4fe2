"""Answers chosen from a table."""

import json
import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from xmodal.models.heads import AnswerTableHead
from xmodal.models.heads.answer_list import AnswerTable
from xmodal.models.heads.answer_table import UNKNOWN

TABLE = ['', 'yes', 'no', 'teddy bear', 'gray', '2']


@pytest.fixture
def make_head(tmp_path):
    """Makes a head with a table."""

    def make(answers=TABLE, **switches):
        file = tmp_path / f'{abs(hash(tuple(answers)))}.json'
        file.write_text(json.dumps(answers))
        head = AnswerTableHead(8, str(file), **switches)
        for parameter in head.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
        return head

    return make


def test_answers_are_found_by_their_text_or_by_the_normalised_forms_of_lxmert_and_vqa():
    table = AnswerTable([*TABLE, 'Yes'])
    answers = ('yes', 'Yes', 'A teddy bear.', 'grey', 'two', 'teddy-bear')
    assert [table.find(answer) for answer in answers] == [1, 6, 3, 4, 5, 3]
    assert table.find('dog') is None


def test_the_first_of_equal_answers_counts():
    assert AnswerTable(['no', 'yes', 'yes', 'Yes.']).find('yes') == 1


def test_an_answer_of_which_a_form_leaves_nothing_is_not_the_empty_one():
    assert AnswerTable(['yes', 'a']).find('') is None  # the first answer of LXMERT's list for VQA
    assert AnswerTable(['', 'yes']).find('the') is None
    assert AnswerTable(['', 'the', 'yes']).find('the') == 1
    assert AnswerTable(['yes', '']).find('') == 1


def test_target_scores_are_the_weights_and_unknown_answers_are_left_out(make_head):
    head = make_head()
    answers = [['yes', 'Yes.', 'dog'], ['dog'], []]
    targets = head.targets(answers, [[0.6, 0.6, 0.3], [1.0], []])
    assert targets.tolist() == [[0, 1, 0, 0, 0, 0], [0] * 6, [0] * 6]


def test_an_answer_of_the_table_is_sampled_in_proportion_to_its_weight(make_head):
    head = make_head()
    answers, weights = [['yes', 'no', 'dog']] * 4000 + [['dog'], []], [[0.9, 0.3, 1.0]] * 4000
    labels = head.sample_labels(answers, [*weights, [1.0], []])
    assert labels[4000:].tolist() == [UNKNOWN, UNKNOWN]
    assert set(labels[:4000].tolist()) == {1, 2}
    assert (labels[:4000] == 1).float().mean().item() == pytest.approx(0.75, abs=0.03)


def test_the_loss_of_labels_is_the_mean_over_the_known_ones(make_head):
    head, logits = make_head(loss_weight=2.0), torch.randn(4, 6)
    labels = torch.tensor([1, UNKNOWN, 5, UNKNOWN])
    logs = head.label_loss(logits, labels)
    p = logits.softmax(1)
    expected = -(math.log(p[0, 1]) + math.log(p[2, 5])) / 2
    assert logs['loss_answers'].item() == pytest.approx(2 * expected, rel=1e-5)


def test_without_a_known_label_the_loss_and_its_gradient_are_zero(make_head):
    head = make_head()
    logs = head.label_loss(head(torch.randn(3, 8)), torch.full((3,), UNKNOWN))
    logs['loss_answers'].backward()
    assert logs['loss_answers'] == 0 and logs['answer_accuracy'] == 0
    assert all((p.grad == 0).all() for p in head.parameters())


def test_the_loss_of_scores_sums_over_answers_and_is_the_mean_over_questions(make_head):
    head, logits, targets = make_head(loss='bce'), torch.randn(3, 6), torch.rand(3, 6)
    expected = 0.0
    for x, y in zip(logits.flatten().tolist(), targets.flatten().tolist(), strict=True):
        p = 1 / (1 + math.exp(-x))
        expected -= (y * math.log(p) + (1 - y) * math.log(1 - p)) / 3
    logs = head.score_loss(logits, targets)
    assert logs['loss_answers'].item() == pytest.approx(expected, rel=1e-5)
    best = [targets[row, logits[row].argmax()].item() for row in range(3)]
    assert logs['answer_accuracy'].item() == pytest.approx(sum(best) / 3)


def test_the_best_answers_come_with_probabilities(make_head):
    logits = torch.tensor([[0.0, 3.0, 1.0, 0.0, 0.0, 0.0]])
    (best,) = make_head(loss='bce').best(logits, 2)
    assert best == [
        ('yes', pytest.approx(0.9526, abs=1e-4)),
        ('no', pytest.approx(0.7311, abs=1e-4)),
    ]
    (best,) = make_head().best(logits, 9)
    assert len(best) == 6 and sum(p for _, p in best) == pytest.approx(1)


@pytest.mark.parametrize('linear', [False, True])
def test_another_table_gets_the_weights_of_equal_answers_and_zeros_for_new_ones(make_head, linear):
    source, pooled = make_head(linear=linear), torch.randn(3, 8)
    target = make_head(['2', 'dog', 'Grey', 'no', 'a teddy bear'], linear=linear)
    target.load_state_dict(source.state_dict())
    expected, actual = source(pooled), target(pooled)
    for column, answer in ((0, '2'), (2, 'gray'), (3, 'no'), (4, 'teddy bear')):
        torch.testing.assert_close(actual[:, column], expected[:, TABLE.index(answer)])
    assert (actual[:, 1] == 0).all()
    reloaded = make_head(['2', 'dog', 'Grey', 'no', 'a teddy bear'], linear=linear)
    reloaded.load_state_dict(target.state_dict())
    assert reloaded(pooled).equal(actual)


@pytest.mark.parametrize('linear', [False, True])
def test_a_head_of_another_number_of_layers_is_refused_and_says_what_to_do(make_head, linear):
    # 16 answers: the first of two layers, from 8 to 16, has the shape of the only one.
    source = nn.ModuleDict({'answers': make_head(list('abcdefghijklmnop'), linear=not linear)})
    target = nn.ModuleDict({'answers': make_head(list('ponmlkjihgfedcba'), linear=linear)})
    layers = 'two layers there and one here' if linear else 'one layer there and two here'
    advice = rf"set linear={not linear} .* load_from_ignore=\['answers'\]"
    with pytest.raises(ValueError, match=rf'answers\.classifier has {layers}: {advice}'):
        target.load_state_dict(source.state_dict(), strict=False)


def test_a_linear_head_gives_all_answers_the_same_score_at_first(tmp_path):
    (tmp_path / 'answers.json').write_text(json.dumps(TABLE))
    head = AnswerTableHead(8, str(tmp_path / 'answers.json'), linear=True)
    assert head(torch.randn(3, 8)).equal(torch.zeros(3, len(TABLE)))


def test_an_equal_table_is_loaded_unchanged(make_head):
    source, target = make_head(), make_head()
    target.load_state_dict(source.state_dict())
    assert target.classifier[3].weight.equal(source.classifier[3].weight)


def test_pre_training_has_no_binary_cross_entropy(tmp_path):
    file = tmp_path / 'answers.json'
    file.write_text('["a", "b"]')
    AnswerTableHead(4, str(file)).check(None)
    with pytest.raises(ValueError, match="heads.answers.loss='bce' is for fine-tuning"):
        AnswerTableHead(4, str(file), loss='bce').check(None)


def test_a_missing_table_and_one_that_is_no_list_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match='heads.answers.answer_list'):
        AnswerTableHead(8, str(tmp_path / 'none.json'))
    (tmp_path / 'bad.json').write_text('{"yes": 1}')
    with pytest.raises(ValueError, match=r'bad\.json cannot be read: .* a list of answers'):
        AnswerTableHead(8, str(tmp_path / 'bad.json'))


@pytest.mark.parametrize(
    ('answer', 'named'), [('hund', "answer, as 'hund', that"), (None, 'er that')]
)
def test_a_table_without_any_of_the_answers_is_a_warning(make_head, monkeypatch, answer, named):
    shown = []
    path = 'xmodal.models.heads.answer_table.print_log'
    monkeypatch.setattr(path, lambda text, *_: shown.append(text))

    def train(head, answer, size=400):
        sample = SimpleNamespace(
            answers=[answer] * bool(answer), answer_weights=[1.0] * bool(answer)
        )
        return head.question_loss(torch.zeros(size, len(TABLE)), [sample] * size)

    head = make_head()
    assert [float(train(head, answer)['loss_answers']) for _ in range(2)] == [0, 0] and not shown
    for _ in range(3):
        train(head, answer)
    (text,) = shown
    assert text.startswith('the first 1200 samples have no answ') and named in text
    shown.clear()
    known = make_head(loss='bce')
    train(known, 'yes')
    for _ in range(4):
        train(known, answer)
    assert not shown
