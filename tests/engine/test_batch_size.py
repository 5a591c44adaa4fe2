"""Batches in which a pair has nothing to be compared with."""

from types import SimpleNamespace

import pytest
import torch
from runs import train
from torch import nn
from torch.utils.data import DataLoader

from xmodal.engine.batch_size import require_batch
from xmodal.errors import ConfigError
from xmodal.models.albef import TextAssignmentPretrainer
from xmodal.models.base import MomentumQueue
from xmodal.models.heads import (
    AnchorContrastHead,
    AnchorHead,
    ITCHead,
    ITMHead,
    LxmertITMHead,
    MLMHead,
    WordContrastHead,
    WordSwapITMHead,
)
from xmodal.models.losses import CLIPLoss, InfoNCELoss, TripletLoss

MATCHING = (ITMHead(8), LxmertITMHead(8), AnchorContrastHead(), TripletLoss(), InfoNCELoss())
CONTRASTS = ITCHead(), AnchorHead(), CLIPLoss()
WITHIN_ONE_PAIR = MLMHead(8, 10), WordContrastHead(), WordSwapITMHead(8, [('left', 'right')])


def check(part, batch_size, processes=1, queue=0):
    model = nn.ModuleDict({'part': part, 'queue': MomentumQueue(queue, 4)})
    require_batch(DataLoader(range(8), batch_size), processes, model)


def refused(part, *sizes, **options):
    with pytest.raises(ConfigError, match=rf'{type(part).__name__} \(model.part\) compares at le'):
        check(part, *sizes, **options)


def name(part):
    return type(part).__name__


@pytest.mark.parametrize('part', MATCHING, ids=name)
def test_negatives_of_the_batch_need_another_pair_in_the_batch_of_each_process(part):
    check(part, 2)
    refused(part, 1)
    refused(part, 1, processes=8, queue=100)


@pytest.mark.parametrize('part', CONTRASTS, ids=name)
def test_a_contrast_has_the_keys_of_all_processes_and_of_the_queue(part):
    check(part, 2)
    check(part, 1, processes=2)
    check(part, 1, queue=1)
    refused(part, 1)


@pytest.mark.parametrize('part', WITHIN_ONE_PAIR, ids=name)
def test_what_is_learned_within_one_pair_takes_batches_of_one(part):
    check(part, 1)


def test_text_assignment_needs_two_other_images():
    sample, positives = TextAssignmentPretrainer.sample_images, torch.eye(2, dtype=torch.bool)
    for _ in range(20):
        _, labels, counts = sample(SimpleNamespace(temperature=1.0), torch.randn(2, 4), positives)
        assert not counts[labels == 2].any()  # 'neither' is never learned
    assert TextAssignmentPretrainer.min_batch == 3


def test_a_training_in_batches_of_one_is_refused_whose_steps_are_accumulated(tiny_config):
    tiny_config.train_dataloader.global_batch_size = 8
    with pytest.raises(ConfigError, match=r'ITMHead \(model.heads.itm\) .* are 1 in the batch of'):
        train(tiny_config, **{'optim_wrapper.accumulative_counts': 8})


def test_the_loss_of_a_pair_alone_is_constant():
    row = torch.tensor([[True]])
    for scores in torch.randn(3, 1, 1):
        assert TripletLoss()(scores, row)['loss_triplet'] == 0
        assert InfoNCELoss()(scores, row)['loss_info_nce'] == 0
    assert CLIPLoss()(torch.randn(1, 4), torch.randn(1, 4), row) == 0
    labels, weights = ITMHead(8).sample_pairs(torch.randn(1, 1), row)[1:]
    assert labels[weights > 0].tolist() == [1]
