"""ITM and MLM fused in one pass: losses and gradients of separate passes, pair by pair."""

import pytest
import torch
from torch.nn.functional import gelu

from xmodal.models.fusion import FusionRequest, fuse_requests
from xmodal.models.heads.mlm import MaskedText
from xmodal.structures import Tokens

PAIRS = torch.tensor([[0, 0], [1, 1], [2, 2], [2, 0], [0, 1], [1, 2], [0, 1], [1, 0], [2, 1]])
LABELS = torch.tensor([1, 1, 1, 0, 0, 0, 0, 0, 0])
WEIGHTS = torch.tensor([1.0, 1, 1, 1, 1, 0, 1, 1, 1])
WEIGHT = 0.3  # of the teacher's soft targets


@pytest.fixture
def planted(monkeypatch, batch):
    """Makes a model draw known pairs and masks; returns the batch and the masked text."""

    def plant(model):
        data = batch(size=3)
        targets = torch.zeros_like(data.attention_mask)
        targets[0, 1] = targets[0, 3] = targets[2, 2] = True  # the second text has none
        masked = MaskedText(data.input_ids.masked_fill(targets, 4), targets)
        heads = model.heads
        monkeypatch.setattr(heads['itm'], 'sample_pairs', lambda *_: (PAIRS, LABELS, WEIGHTS))
        monkeypatch.setattr(heads['mlm'], 'mask_words', lambda *_: masked)
        with torch.no_grad():
            for parameter in model.backbone.position.parameters():
                parameter.normal_(std=0.1)
            for parameter in model.teacher.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        model.distillation_weight = WEIGHT
        return data, masked

    return plant


def encode_alone(backbone, data):
    """The tokens of each image and of each text, encoded on its own."""
    images = [backbone.encode_image(image[None]).tokens for image in data.images]
    texts = zip(data.input_ids, data.attention_mask, strict=True)
    return images, [backbone.text_tokens(ids[None], mask[None]) for ids, mask in texts]


def literal_itm(model, data):
    """Cross-entropy of pairs, each fused on its own, as a loop."""
    backbone, classifier = model.backbone, model.heads['itm'].classifier
    images, texts = encode_alone(backbone, data)
    total = 0.0
    for (image_row, text_row), label, weight in zip(PAIRS, LABELS, WEIGHTS, strict=True):
        logits = classifier(backbone.fuse(images[image_row], texts[text_row]).text_tokens[0, 0])
        total = total - weight * logits.log_softmax(0)[label]
    return total / WEIGHTS.sum()


def literal_words(backbone, head, data, masked):
    """Log-probabilities of the words of every target, one text after another."""
    images, texts = encode_alone(backbone, data._replace(input_ids=masked.input_ids))
    rows = []
    for row, position in masked.targets.nonzero().tolist():
        word = backbone.fuse(images[row], texts[row]).text_tokens[0, position]
        hidden = head.norm(gelu(head.transform(word)))
        rows.append(backbone.text_encoder.word_embeddings @ hidden + head.bias)
    return torch.stack(rows).log_softmax(1)


def literal_mlm(model, data, masked):
    """(1 − α) −log p(word) + α of the cross-entropy with the teacher's probabilities."""
    teacher = model.teacher.module
    predicted = literal_words(model.backbone, model.heads['mlm'], data, masked)
    with torch.no_grad():
        soft = literal_words(teacher['backbone'], teacher['mlm'], data, masked).exp()
    words = data.input_ids[masked.targets]
    hard = -predicted[torch.arange(len(words)), words].mean()
    return (1 - WEIGHT) * hard - WEIGHT * (soft * predicted).sum(1).mean()


@pytest.mark.parametrize('streams', ['both', 'text'])
def test_losses_and_gradients_are_those_of_pairs_fused_one_by_one(
    build, planted, position_name, streams
):
    model = build(position_name, heads=['itc', 'itm', 'mlm'], streams=streams)
    data, masked = planted(model)
    logs = model(data, mode='loss')
    losses = [logs['loss_itm'], logs['loss_mlm']]
    expected = [literal_itm(model, data), literal_mlm(model, data, masked)]
    parameters = [p for p in model.parameters() if p.requires_grad]
    for ours, literal in zip(losses, expected, strict=True):
        torch.testing.assert_close(ours, literal, atol=1e-5, rtol=1e-5)
    gradients = [
        torch.autograd.grad(sum(values), parameters, allow_unused=True, materialize_grads=True)
        for values in (losses, expected)
    ]
    largest = max(float(gradient.abs().max()) for gradient in gradients[1])
    for ours, literal in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, literal, atol=1e-5 * largest, rtol=1e-4)


def test_the_fusion_encoder_runs_once_for_itm_and_mlm(build, planted):
    model = build(heads=['itc', 'itm', 'mlm', 'mim'])
    data, _ = planted(model)
    rows = []
    model.backbone.fusion.register_forward_hook(
        lambda module, inputs, fused: rows.append(len(fused.text_tokens))
    )
    model(data, mode='loss')
    assert rows == [len(PAIRS) + 3, 3]  # both at once; MIM reads the image stream of its images


@pytest.mark.parametrize('streams', ['both', 'text'])
def test_requests_of_different_lengths_and_images_get_what_they_get_alone(
    build, position_name, streams
):
    backbone = build(position_name, streams=streams).backbone.eval()

    def images(count):
        return backbone.image_tokens(torch.randn(count, 3, 24, 24))

    def texts(count, length):
        mask = torch.ones(count, length, dtype=torch.bool)
        mask[0, length - 2 :] = False
        return backbone.text_tokens(torch.randint(5, 40, (count, length)), mask)

    shared = images(3)
    requests = [
        FusionRequest(
            shared, texts(2, 7), torch.tensor([[2, 0], [0, 1]]), torch.tensor([[0], [0]])
        ),
        FusionRequest(images(2), texts(1, 5), torch.tensor([[1, 0]]), torch.tensor([[1, 0, 2]])),
        FusionRequest(shared, texts(2, 5), torch.tensor([[1, 1]]), torch.tensor([[2, 1]])),
    ]
    for request, fused in zip(requests, fuse_requests(backbone, requests), strict=True):
        words = [
            backbone.fuse(
                Tokens(request.image.embeddings[i][None], grid_size=request.image.grid_size),
                request.text.select(torch.tensor([t])),
            ).text_tokens[0, chosen]
            for (i, t), chosen in zip(request.pairs.tolist(), request.words, strict=True)
        ]
        torch.testing.assert_close(fused.text_tokens, torch.stack(words), atol=1e-5, rtol=1e-4)
        image, text = request.pairs.unbind(1)
        relation = backbone.position.relate(request.image.select(image), request.text.select(text))
        torch.testing.assert_close(fused.relation, relation, atol=1e-5, rtol=1e-4)
