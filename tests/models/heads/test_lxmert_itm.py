"""Cross-modality matching."""

import pytest
import torch

from xmodal.models.heads import LxmertITMHead
from xmodal.structures import LxmertStep, Shown


def test_half_of_the_texts_are_replaced_by_any_text_of_another_image():
    positives = torch.eye(20, dtype=torch.bool)
    positives[0, 1] = positives[1, 0] = True
    counts, head = torch.zeros(20, 20), LxmertITMHead(8)
    for _ in range(2000):
        rows, matched = head.sample_texts(positives)
        assert (rows[matched] == torch.arange(20)[matched]).all()
        assert not positives[torch.arange(20), rows][~matched].any()
        counts[torch.arange(20), rows] += 1
    matched_share = counts.diagonal() / 2000
    assert matched_share.mean().item() == pytest.approx(0.5, abs=0.02)
    others = counts[5][torch.arange(20) != 5] / 2000
    assert others.min() > 0.5 / 19 / 2 and others.max() < 0.5 / 19 * 2


def test_an_image_keeps_its_text_where_the_batch_has_no_other():
    rows, matched = LxmertITMHead(8).sample_texts(torch.ones(4, 4, dtype=torch.bool))
    assert rows.tolist() == [0, 1, 2, 3] and matched.all()


def test_the_loss_is_the_cross_entropy_of_yes():
    head, logits = LxmertITMHead(8), torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.5, 0.0]])
    head.classifier = torch.nn.Identity()
    shown = Shown(batch=None, matched=torch.tensor([False, True, True]), input_ids=None)
    logs = head.loss(None, LxmertStep(None, [], shown, None, pooled=logits))
    yes = logits.softmax(1)
    expected = -(yes[0, 0].log() + yes[1, 1].log() + yes[2, 1].log()) / 3
    torch.testing.assert_close(logs['loss_matching'], expected)
    assert logs['matching_accuracy'].item() == pytest.approx(2 / 3)
