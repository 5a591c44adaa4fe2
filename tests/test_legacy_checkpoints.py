"""Checkpoints of version 0.1 load, and give the losses and the scores that they gave there.

With ``XMODAL_EXACT=1`` in the environment numbers are compared bit by bit. That holds on the kind
of processor that wrote the files (x86-64, one thread, the versions in data/legacy/README.md). Any
other may round otherwise, so that the comparison has a small tolerance without it; and where torch
draws other random numbers from the same seed, the losses of a training step can't be compared.
"""

import os

import pytest
import torch
from legacy_models import CHECKPOINTS, LEGACY_MODELS
from torch.nn.functional import dropout

from xmodal.engine.checkpoint import load_weights
from xmodal.models.backbones import ViTImageEncoder
from xmodal.models.fusion import FusionEncoder, fuse_requests
from xmodal.models.heads import PretrainHeads
from xmodal.models.heads.answer_table import AnswerTableHead
from xmodal.registry import MODELS
from xmodal.structures import (
    DataSample,
    ImageTextBatch,
    ObjectLabels,
    PackedTexts,
    Regions,
    select_tokens,
)

EXACT = os.environ.get('XMODAL_EXACT') == '1'


def build(name, folder):
    """A model as it is before its weights are loaded."""
    model = MODELS.build(LEGACY_MODELS[name](folder))
    if name == 'emkum':
        model.teacher.init_weights()  # a frozen teacher is in no checkpoint
    return model


def read_batch(inputs):
    """The batch that a file holds."""
    texts = dict(
        input_ids=inputs['input_ids'],
        attention_mask=inputs['attention_mask'],
        image_ids=inputs['image_ids'],
        text_ids=inputs['text_ids'],
        text_image_ids=inputs['text_image_ids'],
    )
    if 'images' in inputs:
        return ImageTextBatch(images=inputs['images'], **texts)
    regions = Regions(
        features=inputs['features'],
        attention_mask=inputs['region_mask'],
        boxes=inputs['boxes'],
        labels=ObjectLabels(
            objects=inputs['objects'],
            object_confidences=inputs['object_confidences'],
            attributes=inputs['attributes'],
            attribute_confidences=inputs['attribute_confidences'],
        ),
    )
    return ImageTextBatch(images=regions, **texts)


def read_samples(inputs):
    """The data samples that a file holds."""
    return [DataSample(**fields) for fields in inputs['samples']]


# Scores, in evaluation mode


def pretrainer_scores(model, batch, samples):
    image, text = model.tensor(batch)
    fused = model.fuse(image.tokens, text.tokens)
    pairs = torch.tensor([[0, 0], [1, 2], [3, 1], [2, 2]])
    return dict(
        image_embeddings=image.embedding,
        text_embeddings=text.embedding,
        fused_image=fused.image_tokens,
        fused_text=fused.text_tokens[batch.attention_mask],
        match=model.match(image.tokens, text.tokens, pairs),
    )


def top_answers(samples):
    return dict(
        answers=[[answer for answer, _ in sample.top_answers] for sample in samples],
        probabilities=torch.tensor([[p for _, p in sample.top_answers] for sample in samples]),
    )


def answer_generator_scores(model, batch, samples):
    ranked = top_answers(model.predict(batch, samples))
    model.answer_list = []
    written = top_answers(model.predict(batch, samples))
    return dict(
        ranked_answers=ranked['answers'],
        ranked_probabilities=ranked['probabilities'],
        written_answers=written['answers'],
        written_probabilities=written['probabilities'],
    )


def classifier_scores(model, batch, samples):
    predicted = model.predict(batch, samples)
    return dict(
        logits=model.tensor(batch),
        probabilities=torch.stack([sample.probabilities for sample in predicted]),
        classes=[sample.predicted for sample in predicted],
    )


def text_assignment_scores(model, batch, samples):
    image = model.backbone.encode_image(batch.images)
    text = model.backbone.encode_text(batch.input_ids, batch.attention_mask)
    fused = model.backbone.fuse(image.tokens, text.tokens)
    return dict(
        image_embeddings=image.embedding,
        text_embeddings=text.embedding,
        logits=model.heads['assignment'](fused.text_tokens[:, 0]),
    )


def tagger_scores(model, batch, samples):
    return dict(logits=model.tensor(batch))


def lxmert_pretrainer_scores(model, batch, samples):
    fused = model.tensor(batch)
    pooled = model.backbone.pool(fused)
    return dict(
        fused_image=fused.image_tokens[batch.images.attention_mask],
        fused_text=fused.text_tokens[batch.attention_mask],
        match=model.heads['matching'](pooled),
        answers=model.heads['answers'](pooled),
    )


def answer_classifier_scores(model, batch, samples):
    return dict(logits=model.tensor(batch), **top_answers(model.predict(batch, samples)))


def matching_scores(model, batch, samples):
    images = model.encode_image(batch.images)
    texts = model.encode_text(batch.input_ids, batch.attention_mask)
    packed = PackedTexts.from_padded(texts.embeddings, texts.attention_mask)
    return dict(logits=model.tensor(batch), all_pairs=model.score_all_pairs(images, packed))


def emkum_scores(model, batch, samples):
    image, text = model.tensor(batch)
    return dict(image_embeddings=image.embedding, text_embeddings=text.embedding)


SCORES = dict(
    albef_pretrain=pretrainer_scores,
    albef_text_streams=pretrainer_scores,
    albef_vqa=answer_generator_scores,
    albef_nlvr=classifier_scores,
    albef_classifier=classifier_scores,
    albef_text_assignment=text_assignment_scores,
    image_tagger=tagger_scores,
    lxmert_pretrain=lxmert_pretrainer_scores,
    lxmert_vqa=answer_classifier_scores,
    lxmert_nlvr=classifier_scores,
    sgraf_saf_temde=matching_scores,
    sgraf_sgr_self_attention=matching_scores,
    dual_encoder_gpo=matching_scores,
    emkum=emkum_scores,
)


@torch.no_grad()
def scores_of(name, model, inputs):
    """The outputs of the model in evaluation mode."""
    return SCORES[name](model.eval(), read_batch(inputs), read_samples(inputs))


# Losses, in training mode


def losses_of(model, inputs):
    """Everything that two training steps log, and the norm of the sum of their gradients.

    The second step meets the queue as the first one left it.
    """
    model.train()
    model.distillation_weight = 0.4  # for models with a momentum teacher
    torch.manual_seed(0)
    steps = []
    for _ in range(2):
        logs = model.loss(read_batch(inputs), read_samples(inputs))
        sum(value for name, value in logs.items() if 'loss' in name).backward()
        steps.append({name: value.detach() for name, value in logs.items()})
    squares = [p.grad.double().square().sum() for p in model.parameters() if p.grad is not None]
    return steps, torch.stack(squares).sum().sqrt()


def random_draws():
    """The kinds of random numbers that a training step draws."""
    torch.manual_seed(0)
    rows = torch.ones(16, 8).multinomial(1).float()
    return torch.cat([dropout(torch.ones(64), 0.1), torch.rand(16), rows.flatten()])


fuse = FusionEncoder.forward


def fuse_all_words(encoder, *args, words=None, **others):
    fused = fuse(encoder, *args, **others)
    if words is None:
        return fused
    return fused._replace(text_tokens=select_tokens(fused.text_tokens, words))


def loss_head_by_head(heads, model, step):
    """The losses, each head fused before the next one draws anything."""
    values = {}
    for head in heads.active_heads():
        request = head.request_fusion(model, step)
        if request is None:
            values |= head.loss(model, step)
        else:
            fused = fuse_requests(model.backbone, [request])
            values |= head.fused_loss(model, step, request, *fused)
    return values


def sample_answer_by_answer(head, answers, weights):
    """A label of each question, drawn before that of the next one."""
    labels = torch.full((len(answers),), -1)
    for row, (own, shares) in enumerate(zip(answers, weights, strict=True)):
        known = [(head.table.find(a), w) for a, w in zip(own, shares, strict=True) if w > 0]
        known = [(index, weight) for index, weight in known if index is not None]
        if known:
            drawn = torch.multinomial(torch.tensor([weight for _, weight in known]), 1)
            labels[row] = known[int(drawn)][0]
    return labels


def assert_same(actual, expected):
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        if not isinstance(value, torch.Tensor):
            assert actual[name] == value, name
        elif EXACT:
            assert torch.equal(actual[name], value), name
        else:
            torch.testing.assert_close(actual[name], value, rtol=1e-4, atol=1e-5, msg=name)


@pytest.mark.parametrize('name', list(LEGACY_MODELS))
def test_a_legacy_checkpoint_gives_the_same_scores(name, tmp_path):
    model, file = build(name, tmp_path), CHECKPOINTS / f'{name}.pth'
    load_weights(model, file)
    content = torch.load(file, weights_only=True)
    assert_same(scores_of(name, model, content['inputs']), content['expected']['scores'])


@pytest.mark.parametrize('name', list(LEGACY_MODELS))
def test_a_legacy_checkpoint_gives_the_same_losses(name, tmp_path, monkeypatch):
    draws = torch.load(CHECKPOINTS / 'random_draws.pth', weights_only=True)
    if not EXACT and not torch.allclose(random_draws(), draws['draws']):
        pytest.skip('torch draws other random numbers here than where the file was written')
    # The files drew dropout for all words of the last fusion layer, also for those nobody reads.
    monkeypatch.setattr(FusionEncoder, 'forward', fuse_all_words)
    # They drew dropout of ITM before the masks of MLM.
    monkeypatch.setattr(PretrainHeads, 'loss', loss_head_by_head)
    # Their convolutional stem saw the pixels of masked patches.
    monkeypatch.setattr(ViTImageEncoder, '_hide', lambda encoder, images, patch_mask: images)
    # They drew the answers of a batch one by one.
    monkeypatch.setattr(AnswerTableHead, 'sample_labels', sample_answer_by_answer)
    model, file = build(name, tmp_path), CHECKPOINTS / f'{name}.pth'
    load_weights(model, file)
    content = torch.load(file, weights_only=True)
    steps, gradient_norm = losses_of(model, content['inputs'])
    for losses, expected in zip(steps, content['expected']['losses'], strict=True):
        assert_same(losses, expected)
    # Gradients may be summed in another order: their norm is equal but for rounding.
    torch.testing.assert_close(
        gradient_norm, content['expected']['gradient_norm'], rtol=1e-4, atol=1e-5
    )
