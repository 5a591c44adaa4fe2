"""Reasoning over several images, and text assignment."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from xmodal.registry import MODELS
from xmodal.structures import DataSample


@pytest.fixture
def build(config):
    """Builds a tiny model of this file."""

    def make(kind='AlbefNLVR', position='ace_rpe', streams='both', **others):
        whole = config(position, streams=streams)
        if kind == 'AlbefNLVR':
            others = {'head': dict(type='ClassificationHead', num_classes=2), **others}
        model = MODELS.build(
            dict(
                type=kind,
                data_preprocessor=whole['data_preprocessor'],
                backbone=whole['backbone'],
                **others,
            )
        )
        # A new position does nothing: give it something to do.
        for parameter in model.backbone.position.parameters():
            torch.nn.init.normal_(parameter, std=0.1)
        return model

    return make


@pytest.fixture
def several(batch):
    """A batch with K images a text, a text's together."""

    def make(size=3, count=2, **others):
        data = batch(size=size, **others)
        return data._replace(images=torch.randn(size * count, 3, 24, 24))

    return make


def labelled(labels):
    samples = [DataSample() for _ in labels]
    for sample, label in zip(samples, labels, strict=True):
        sample.label = label
    return samples


@torch.no_grad()
@pytest.mark.parametrize('streams', ['both', 'text'])
@pytest.mark.parametrize('count', [1, 2, 3])
def test_each_text_is_fused_with_its_own_images_in_order(build, several, streams, count):
    model, data = build(streams=streams).eval(), several(count=count)
    found = model(data)
    backbone, head = model.backbone, model.heads['classification']
    text = backbone.encode_text(data.input_ids, data.attention_mask).tokens
    own = data.images.view(3, count, 3, 24, 24)
    images = [backbone.encode_image(own[:, place]).tokens for place in range(count)]
    words = backbone.fuse_images(images, text)[0].text_tokens
    torch.testing.assert_close(found, head(words), atol=1e-5, rtol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize('streams', ['both', 'text'])
def test_with_one_image_it_is_the_classifier(build, several, config, streams):
    model, data = build(streams=streams, momentum=None).eval(), several(count=1)
    whole = config(streams=streams)
    classifier = MODELS.build(
        dict(
            type='AlbefClassifier',
            data_preprocessor=whole['data_preprocessor'],
            backbone=whole['backbone'],
            head=dict(type='ClassificationHead', num_classes=2),
            momentum=None,
        )
    ).eval()
    classifier.load_state_dict(model.state_dict())
    torch.testing.assert_close(model(data), classifier(data))


@torch.no_grad()
def test_the_order_of_the_images_matters(build, several):
    model, data = build().eval(), several(size=1)
    for parameter in model.backbone.fusion.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    turned = model(data._replace(images=data.images.flip(0)))
    assert not torch.allclose(model(data), turned, atol=1e-4)


@pytest.mark.parametrize('streams', ['both', 'text'])
def test_it_overfits_statements_about_the_place_of_an_image(build, several, streams):
    """Two texts, and two images in either order: only words and places together tell."""
    model = build(streams=streams, momentum=0.5).train()
    data = several(size=4)
    one, other = data.images[0], data.images[1]
    images = torch.stack([one, other, other, one, one, other, other, one])
    ids, mask = (x[[0, 0, 1, 1]] for x in (data.input_ids, data.attention_mask))
    data = data._replace(images=images, input_ids=ids, attention_mask=mask)
    labels = [0, 1, 1, 0]
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-3)
    for _ in range(90):
        loss = model(data, labelled(labels), mode='loss')['loss_classification']
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        model.update_momentum()
    found = model.eval()(data, labelled([0] * 4), mode='predict')
    assert [sample.predicted for sample in found] == labels


# text assignment


@pytest.mark.parametrize('streams', ['both', 'text'])
def test_text_assignment_trains_network_and_head(build, batch, streams):
    model = build('TextAssignmentPretrainer', streams=streams).train()
    logs = model(batch(size=5), mode='loss')
    logs['loss_assignment'].backward()
    idle = ('backbone.image_proj', 'backbone.text_proj')
    for name, parameter in model.named_parameters():
        assert name.startswith(idle) == (parameter.grad is None), name
        assert parameter.grad is None or parameter.grad.isfinite().all(), name


def test_the_text_belongs_to_the_first_image_the_second_or_none(build):
    model = build('TextAssignmentPretrainer')
    vectors = torch.nn.functional.normalize(torch.randn(40, 8), dim=1)
    ids = torch.arange(40) // 2  # every image twice
    same = ids[:, None] == ids
    pairs, labels, possible = model.draw(vectors, same)
    assert possible.all()
    own = torch.arange(40)
    for place in (0, 1):
        assert ((pairs[:, place] == own) == (labels == place)).all()
        shown_as_other = labels != place
        assert not same[own, pairs[:, place]][shown_as_other].any()
    assert (pairs[:, 0] != pairs[:, 1]).all()


def test_the_three_answers_are_equally_frequent(build):
    model = build('TextAssignmentPretrainer')
    vectors, same = torch.randn(3000, 4), torch.eye(3000, dtype=torch.bool)
    _, labels, _ = model.draw(vectors, same)
    shares = labels.bincount(minlength=3) / 3000
    torch.testing.assert_close(shares, torch.full((3,), 1 / 3), atol=0.04, rtol=0)


def test_other_images_are_drawn_by_their_similarity(build):
    model = build('TextAssignmentPretrainer', temperature=0.5)
    vectors = torch.tensor([[1.0, 0], [0.6, 0.8], [0, 1], [-1, 0]])
    same = torch.eye(4, dtype=torch.bool)
    drawn = torch.zeros(4)
    for _ in range(2000):
        pairs, labels, _ = model.draw(vectors, same)
        if labels[0] == 0:
            drawn[pairs[0, 1]] += 1
    expected = ((vectors @ vectors[0]) / 0.5)[1:].softmax(0)
    torch.testing.assert_close(drawn[1:] / drawn.sum(), expected, atol=0.06, rtol=0)


def test_texts_without_enough_other_images_do_not_count(build, batch):
    model = build('TextAssignmentPretrainer')
    logs = model(batch(size=3, image_ids=[7, 7, 7]), mode='loss')
    assert logs['loss_assignment'] == 0 and logs['assignment_accuracy'] == 0
    logs['loss_assignment'].backward()
    # One other image is enough to be told from, but not for two that are both of another text.
    vectors, same = torch.randn(2, 4), torch.eye(2, dtype=torch.bool)
    for _ in range(10):
        _, labels, possible = model.draw(vectors, same)
        assert (possible == (labels < 2)).all()


def test_the_loss_is_that_of_the_drawn_images(build, batch, monkeypatch):
    model, data = build('TextAssignmentPretrainer').eval(), batch(size=3)
    pairs, labels = torch.tensor([[0, 2], [2, 1], [0, 1]]), torch.tensor([0, 1, 2])
    possible = torch.tensor([True, True, False])
    monkeypatch.setattr(model, 'draw', lambda *_: (pairs, labels, possible))
    with torch.no_grad():
        found = model(data, mode='loss')['loss_assignment']
        backbone = model.backbone
        image = backbone.encode_image(data.images).tokens
        text = backbone.encode_text(data.input_ids, data.attention_mask).tokens
        shown = [image.select(rows) for rows in pairs.unbind(1)]
        words = backbone.fuse_images(shown, text)[1].text_tokens
        logits = model.heads['assignment'](words[:, 0])
    torch.testing.assert_close(found, cross_entropy(logits[:2], labels[:2]))


def test_text_assignment_overfits_a_few_pairs(build, batch, monkeypatch):
    model, data = build('TextAssignmentPretrainer').train(), batch(size=4)
    drawn = model.draw(torch.randn(4, 8), torch.eye(4, dtype=torch.bool))
    monkeypatch.setattr(model, 'draw', lambda *_: drawn)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(80):
        logs = model(data, mode='loss')
        optimizer.zero_grad()
        logs['loss_assignment'].backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    assert logs['loss_assignment'] < 0.1 and logs['assignment_accuracy'] == 1


def test_its_weights_start_the_reasoner_and_its_teacher(build):
    assigned, model = build('TextAssignmentPretrainer'), build()
    model.load_state_dict(assigned.state_dict(), strict=False)
    for name, value in assigned.backbone.state_dict().items():
        assert torch.equal(model.backbone.state_dict()[name], value)
        assert torch.equal(model.teacher.module['backbone'].state_dict()[name], value)


def test_text_assignment_only_trains(build, batch):
    with pytest.raises(ValueError, match=r"mode='predict', expected one of \['loss'\]"):
        build('TextAssignmentPretrainer')(batch(), mode='predict')
