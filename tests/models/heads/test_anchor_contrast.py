"""The contrast of anchors' similarities against a loop over the pairs of a batch."""

from types import SimpleNamespace

import pytest
import torch
from contrastive_step import make_step

from xmodal import functional as F
from xmodal.models.heads import AnchorContrastHead

GROUPS, TEMPERATURE = 2, 0.2


def make_model(**position):
    position = SimpleNamespace(embed_dims=16, **position)
    backbone = SimpleNamespace(position=position, image_encoder=SimpleNamespace(has_cls=True))
    return SimpleNamespace(backbone=backbone)


def nearest(image, text):
    """Mean similarity of the words to their nearest patch, by Eq. 3."""
    table = F.multi_group_similarity(image[None], text[None], GROUPS)[0, 1:, 1:].mean(-1)
    return table.amax(0).mean()


def test_the_loss_is_that_of_a_softmax_over_the_batch_in_both_directions():
    step = make_step()
    texts = step.text.tokens
    lengths = texts.attention_mask.sum(1).tolist()
    matches = step.batch.identities.positives()
    assert len(set(lengths)) > 1 and matches.sum() > len(matches)  # padding, several positives
    pairs = list(zip(texts.embeddings, lengths, strict=True))
    images = step.image.tokens.embeddings
    logits = torch.tensor([[nearest(image, text[:n]) for text, n in pairs] for image in images])
    total, count = 0.0, len(images)
    for scores, positives in ((logits, matches), (logits.T, matches.T)):
        for row, positive in zip((scores / TEMPERATURE).log_softmax(1), positives, strict=True):
            total -= float(row[positive].mean()) / (2 * count)
    right = sum(float(matches[b, logits[b].argmax()]) for b in range(count)) / count
    of_position = AnchorContrastHead(TEMPERATURE), make_model(groups=GROUPS)
    of_head = AnchorContrastHead(TEMPERATURE, groups=GROUPS), make_model()
    for head, model in (of_position, of_head):
        head.check(model)
        found = head.loss(model, step)
        assert found['loss_anchors'].item() == pytest.approx(total, rel=1e-4)
        assert found['anchors_accuracy'].item() == pytest.approx(right)


def test_a_position_without_groups_is_refused():
    with pytest.raises(ValueError, match="type='AnchorRelativePosition'.*found SimpleNamespace"):
        AnchorContrastHead().check(make_model())


def test_groups_that_do_not_fit_are_an_error():
    for groups in (0, 3):
        with pytest.raises(ValueError, match=f'groups={groups} must divide the width .*, 16'):
            AnchorContrastHead(groups=groups).check(make_model())
    with pytest.raises(ValueError, match='groups=2, and position.groups=4: the head would train'):
        AnchorContrastHead(groups=2).check(make_model(groups=4))
