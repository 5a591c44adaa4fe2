"""The adapter of public SGRAF, on a stand-in of its `model.py` that is written literally."""

from functools import partial

import pytest
import torch
from torch.nn.functional import normalize

from xmodal.benchmark.sgraf_peer import PublicSGRAF
from xmodal.converters.sgraf import rename
from xmodal.errors import ConfigError
from xmodal.registry import MODELS

# The interface and the names of the public code; its score is a sum of all that it is given.
STAND_IN = """
from torch import nn
import torch


class Attention(nn.Module):
    def __init__(self, width, norms):
        super().__init__()
        for name, channels in zip(('embedding_local', 'embedding_global'), norms):
            norm = [nn.BatchNorm1d(channels)] if channels else []
            self.add_module(name, nn.Sequential(nn.Linear(width, width), *norm, nn.Dropout(0.4)))
        self.embedding_common = nn.Sequential(nn.Linear(width, 1))


class Filtration(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attn_sim_w, self.bn = nn.Linear(dim, 1), nn.BatchNorm1d(1)


class EncoderSimilarity(nn.Module):
    def __init__(self, width, dim, module_name):
        super().__init__()
        assert module_name == 'SAF'
        self.v_global_w = Attention(width, (36, width))
        self.t_global_w = Attention(width, (None, None))
        self.sim_tranloc_w, self.sim_tranglo_w = nn.Linear(width, dim), nn.Linear(width, dim)
        self.sim_eval_w, self.sigmoid = nn.Linear(dim, 1), nn.Sigmoid()
        self.SAF_module = Filtration(dim)

    def forward(self, images, captions, lengths):
        sums = [captions[i, :length].sum() for i, length in enumerate(lengths)]
        return self.sigmoid(images.sum((1, 2))[:, None] + torch.stack(sums))
"""


@pytest.fixture
def similarity():
    return MODELS.build(
        dict(
            type='SGRAFSimilarity',
            embed_dims=8,
            dim=4,
            reasoning=dict(type='SAF'),
            global_pooling=dict(type='SelfAttentionGlobal', regions=36, dropout=0.0),
        )
    ).eval()


def test_it_has_the_weights_of_the_similarity_and_gives_logits(tmp_path, similarity):
    (tmp_path / 'model.py').write_text(STAND_IN)
    peer = PublicSGRAF(similarity, tmp_path, partial(rename, 2))
    encoder, pooling = peer.encoder, similarity.global_pooling
    for theirs, ours in (
        (encoder.sim_tranloc_w.weight, similarity.local.linear.weight),
        (encoder.sim_tranglo_w.weight, pooling.linear.weight),
        (encoder.sim_eval_w.weight, similarity.output.weight),
        (encoder.v_global_w.embedding_local[0].weight, pooling.image.local.weight),
        (encoder.t_global_w.embedding_common[0].weight, pooling.text.gate.weight),
        (encoder.SAF_module.attn_sim_w.weight, similarity.reasoning.relevance.weight),
    ):
        assert torch.equal(theirs, ours) and theirs.data_ptr() != ours.data_ptr()
    assert {x.p for x in peer.modules() if isinstance(x, torch.nn.Dropout)} == {0.0}
    images, captions = (
        normalize(torch.randn(2, 36, 8), dim=-1),
        [torch.ones(3, 8), torch.ones(1, 8)],
    )
    expected = images.sum((1, 2))[:, None] + torch.tensor([24.0, 8.0])
    torch.testing.assert_close(peer.score(images, captions), expected)


def test_another_folder_is_an_error(tmp_path, similarity):
    with pytest.raises(ConfigError, match=r'has no model\.py with EncoderSimilarity'):
        PublicSGRAF(similarity, tmp_path, partial(rename, 2))
