"""Answers chosen by vectors."""

import json

import pytest
import torch
from torch.nn.functional import layer_norm, normalize, softplus

from xmodal.registry import MODELS

ANSWERS = ['word1', 'word2 word3', 'word4']


@pytest.fixture
def model(config, tmp_path):
    """A tiny model with three answers."""
    file = tmp_path / 'answers.json'
    file.write_text(json.dumps(ANSWERS))
    base = config()
    head = dict(type='AnswerTableHead', answer_list=str(file), loss='bce')
    backbone = dict(base['backbone'], frozen=['text_encoder', 'text_proj'])
    model = MODELS.build(
        dict(
            type='AlbefVectorVQA',
            data_preprocessor=base['data_preprocessor'],
            backbone=backbone,
            head=head,
            report=2,
        )
    )
    torch.nn.init.normal_(model.gate.weight)
    return model


@pytest.fixture
def batch(model, samples):
    """Three questions, each with its answer."""
    data = samples([f'word{10 + i} word20' for i in range(3)])
    for sample, answer in zip(data['data_samples'], ANSWERS, strict=True):
        sample.answers, sample.answer_weights = [answer], [1.0]
    return model.data_preprocessor(data, False)


def test_a_score_is_that_of_the_head_and_the_gated_similarity_of_the_answer(model, batch):
    model.eval()
    inputs = batch['inputs']
    logits = model.tensor(inputs)
    backbone = model.backbone
    image = backbone.encode_image(inputs.images).embedding
    question = backbone.encode_text(inputs.input_ids, inputs.attention_mask).embedding
    for row in range(3):
        vectors = [layer_norm(x[row], x.shape[-1:]) for x in (image, question)]
        expected = model.heads['answers'](torch.cat(vectors)[None])[0]
        gate = softplus(model.gate(vectors[1]))
        for column, answer in enumerate(ANSWERS):
            ids, mask = model.data_preprocessor.tokenize([answer])
            vector = backbone.encode_text(ids, mask).embedding[0]
            cosine = normalize(image[row], dim=0) @ normalize(vector, dim=0)
            added = expected[column] + gate[0] * cosine / 0.07
            torch.testing.assert_close(logits[row, column], added, atol=1e-4, rtol=1e-4)


def test_it_overfits_a_few_questions_and_predicts_their_answers(model, batch):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(40):
        logs = model.loss(batch['inputs'], batch['data_samples'])
        optimizer.zero_grad()
        logs['loss_answers'].backward()
        optimizer.step()
    assert set(logs) == {'loss_answers', 'answer_accuracy'} and logs['answer_accuracy'] == 1
    predicted = model.eval().predict(batch['inputs'], batch['data_samples'])
    assert [sample.predicted for sample in predicted] == ANSWERS
    assert [len(sample.top_answers) for sample in predicted] == [2, 2, 2]


def test_vectors_of_answers_are_those_of_weights_that_were_loaded_since(model, batch):
    model.eval()
    before = model.tensor(batch['inputs'])
    state = {name: x + 0.1 if 'text_proj' in name else x for name, x in model.state_dict().items()}
    model.load_state_dict(state)  # without another call of eval()
    after = model.tensor(batch['inputs'])
    ids, mask = model.data_preprocessor.tokenize(ANSWERS)
    expected = model.backbone.encode_text(ids, mask).embedding
    torch.testing.assert_close(model._answers, expected)
    assert not torch.equal(before, after)


@pytest.mark.parametrize(
    ('backbone', 'trained'),
    [
        ({}, "'text_encoder', 'text_proj'"),
        (
            dict(
                frozen=['text_encoder', 'text_proj'],
                text_pooling=dict(type='GPOPooling'),
                token_type=dict(type='TokenTypeEmbedding'),
            ),
            "'text_pooling', 'token_type'",
        ),
    ],
)
def test_parts_of_the_text_that_are_trained_are_an_error(config, tmp_path, backbone, trained):
    base, file = config(), tmp_path / 'answers.json'
    file.write_text(json.dumps(ANSWERS))
    with pytest.raises(ValueError, match=rf'frozen lacks \[{trained}\]'):
        MODELS.build(
            dict(
                type='AlbefVectorVQA',
                data_preprocessor=base['data_preprocessor'],
                backbone={**base['backbone'], **backbone},
                head=dict(type='AnswerTableHead', answer_list=str(file)),
            )
        )
