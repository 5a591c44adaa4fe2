"""projects/anchor_variants against literal loops."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from projects.anchor_variants.anchor_variants import (
    ProjectedAnchors,
    QuantileAnchors,
    TransportAnchors,
)
from projects.anchor_variants.box_hints import BoxHintHead
from projects.anchor_variants.fused_anchors import ReanchoredFusionEncoder
from xmodal.functional import multi_group_similarity
from xmodal.models.fusion import FusionEncoder
from xmodal.models.fusion.layer import LayerNeeds
from xmodal.models.fusion.stream import Stream
from xmodal.models.necks import AnchorRelativePosition
from xmodal.structures import Tokens

WIDTH, GROUPS, WORDS = 8, 2, (6, 4)
SIZES = dict(depth=2, embed_dims=WIDTH, num_heads=2, groups=GROUPS)


@pytest.fixture
def image():
    return Tokens(torch.randn(2, 1 + 9, WIDTH), grid_size=(3, 3))


@pytest.fixture
def text():
    mask = torch.arange(WORDS[0]) < torch.tensor(WORDS)[:, None]
    return Tokens(torch.randn(2, WORDS[0], WIDTH), mask)


def test_a_projection_starts_as_the_paper_and_is_one_of_whole_tokens(image, text):
    position = ProjectedAnchors(**SIZES)
    expected = AnchorRelativePosition(**SIZES).distance(image, text)
    for found, wanted in zip(position.distance(image, text), expected, strict=True):
        torch.testing.assert_close(found, wanted)
    for weight in (position.image_proj.weight, position.text_proj.weight):
        torch.nn.init.normal_(weight)
    patches = image.embeddings @ position.image_proj.weight.T
    words = text.embeddings @ position.text_proj.weight.T
    similarity = position.similarity(image, text)
    for group in range(GROUPS):
        part = slice(group * WIDTH // GROUPS, (group + 1) * WIDTH // GROUPS)
        literal = torch.nn.functional.cosine_similarity(
            patches[1, 4, part], words[1, 2, part], dim=0
        )
        torch.testing.assert_close(similarity[1, 4, 2, group], literal)


def test_a_quantile_makes_the_same_share_of_pairs_anchors(image, text):
    position = QuantileAnchors(**SIZES, quantile=0.75)
    similarity = position.similarity(image, text)
    plain = multi_group_similarity(image.embeddings, text.embeddings, GROUPS)
    for row, words in enumerate(WORDS):
        for group in range(GROUPS):
            pairs = plain[row, :, :words, group].flatten().numpy()
            threshold = np.quantile(pairs, 0.75)
            anchors = similarity[row, :, :words, group] >= position.delta
            assert int(anchors.sum()) == int((pairs >= threshold).sum())


def test_transport_is_that_of_literal_steps(image, text):
    position = TransportAnchors(**SIZES, epsilon=0.3, steps=40)
    found = position.similarity(image, text)
    plain = multi_group_similarity(image.embeddings, text.embeddings, GROUPS)
    for row, words in enumerate(WORDS):
        for group in range(GROUPS):
            kernel = [
                [math.exp(float(plain[row, i, j, group]) / 0.3) for j in range(words)]
                for i in range(10)
            ]
            for _ in range(40):
                for line in kernel:
                    total = sum(line)
                    line[:] = [value / total / 10 for value in line]
                for j in range(words):
                    total = sum(line[j] for line in kernel)
                    for line in kernel:
                        line[j] /= total * words
            plan = torch.tensor(kernel) * 10 * words - 1
            torch.testing.assert_close(found[row, :, :words, group], plan, atol=1e-4, rtol=1e-4)
        assert (found[row, :, words:] == -1).all()


@pytest.mark.parametrize('kind', [ProjectedAnchors, QuantileAnchors, TransportAnchors])
def test_gradients_reach_the_tokens_and_are_finite(kind, image, text):
    image = image._replace(embeddings=image.embeddings.requires_grad_())
    position = kind(**SIZES)
    relation = position.relate(image, text)
    relation.features.sum().backward()
    gradients = [image.embeddings.grad, *(p.grad for p in position.parameters() if p.requires_grad)]
    assert all(x.isfinite().all() for x in gradients if x is not None)
    assert image.embeddings.grad.any()


def test_each_layer_relates_what_the_layer_before_returns(image, text):
    position = AnchorRelativePosition(**SIZES)
    for weight in position.parameters():
        torch.nn.init.normal_(weight)
    fusion = ReanchoredFusionEncoder(depth=2, embed_dims=WIDTH, num_heads=2, dropout=0.0)
    found = fusion(image, text, position)

    words, patches = Stream(text), Stream(image)
    needs = LayerNeeds(image=True, words=None, attentions=False)
    for index, layer in enumerate(fusion.layers):
        relation = position.relate(patches.tokens, words.tokens)
        plain = super(type(layer), layer).forward
        patches, words, _ = plain(patches, words, position, index, relation, needs)
    torch.testing.assert_close(found.text_tokens, words.tokens.embeddings)
    torch.testing.assert_close(found.image_tokens, patches.tokens.embeddings)

    paper = FusionEncoder(depth=2, embed_dims=WIDTH, num_heads=2, dropout=0.0)
    paper.load_state_dict(fusion.state_dict())
    assert not torch.allclose(paper(image, text, position).text_tokens, found.text_tokens)


@pytest.fixture
def instances(tmp_path):
    """Two images of 30 x 30 pixels, each with a circle in the upper left third."""
    boxes = [
        dict(id=i, image_id=i, category_id=1, bbox=[0, 0, 10, 10], attributes=['red'])
        for i in (5, 6)
    ]
    content = dict(
        images=[dict(id=i, file_name=f'{i}.png', width=30, height=30) for i in (5, 6)],
        categories=[dict(id=1, name='circle')],
        annotations=boxes,
    )
    file = tmp_path / 'instances.json'
    file.write_text(json.dumps(content))
    return str(file)


def step_of(image, text, image_ids):
    batch = SimpleNamespace(
        images=None,
        input_ids=torch.arange(WORDS[0]).expand(2, -1),
        attention_mask=text.attention_mask,
        image_ids=torch.tensor(image_ids),
    )
    parts = (SimpleNamespace(tokens=tokens) for tokens in (image, text))
    return SimpleNamespace(batch=batch, **dict(zip(('image', 'text'), parts, strict=True)))


@pytest.fixture
def model():
    words = ['[CLS]', 'a', 'red', 'circle', 'and', '[SEP]']
    return SimpleNamespace(
        data_preprocessor=SimpleNamespace(words=lambda ids: [words[i] for i in ids]),
        backbone=SimpleNamespace(
            image_encoder=SimpleNamespace(has_cls=True), position=SimpleNamespace(groups=GROUPS)
        ),
    )


def test_a_hint_is_the_softmax_of_a_word_over_the_patches_of_its_box(image, text, instances, model):
    head = BoxHintHead(instances, share=0.5, temperature=0.2)
    (hinted,) = head.objects
    found = head.loss(model, step_of(image, text, [hinted, 11 - hinted]))['loss_hints']
    losses = []
    for word in (2, 3):  # 'red' and 'circle'
        for group in range(GROUPS):
            part = slice(group * WIDTH // GROUPS, (group + 1) * WIDTH // GROUPS)
            weights = [
                math.exp(
                    float(
                        torch.nn.functional.cosine_similarity(
                            image.embeddings[0, patch, part], text.embeddings[0, word, part], dim=0
                        )
                    )
                    / 0.2
                )
                for patch in range(1, 10)
            ]
            losses.append(-math.log(weights[0] / sum(weights)))
    assert float(found) == pytest.approx(np.mean(losses), rel=1e-5)


def test_a_batch_without_hints_has_a_loss_of_zero_with_a_gradient(image, text, instances, model):
    image = image._replace(embeddings=image.embeddings.requires_grad_())
    loss = BoxHintHead(instances, share=0.5).loss(model, step_of(image, text, [1, 2]))['loss_hints']
    loss.backward()
    assert loss.item() == 0
    assert not image.embeddings.grad.any()
