"""Weights of SGRAF, against a literal implementation with its original names."""

import argparse
import json
import sys

import numpy as np
import pytest
import torch
from mmengine.config import Config
from torch import nn

from tools.model_converters import sgraf
from xmodal import converters
from xmodal.registry import MODELS
from xmodal.structures import Regions
from xmodal.zoo.checkpoints import find_checkpoint
from xmodal.zoo.metafile import ModelEntry

WORDS, REGIONS, FEATURES, WIDTH, DIM = 12, 4, 10, 8, 6


def l2norm(x):
    return x / (x.pow(2).sum(-1, keepdim=True).sqrt() + 1e-8)


class Text(nn.Module):
    """EncoderText: word embeddings and a bidirectional GRU, averaged."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 5)
        self.cap_rnn = nn.GRU(5, WIDTH, batch_first=True, bidirectional=True)

    def forward(self, ids):
        both, _ = self.cap_rnn(self.embed(ids)[None])
        return l2norm((both[0, :, :WIDTH] + both[0, :, WIDTH:]) / 2)


class Attention(nn.Module):
    """VisualSA with batch norms, TextSA without; in evaluation mode."""

    def __init__(self, norms):
        super().__init__()
        self.embedding_local = nn.Sequential(nn.Linear(WIDTH, WIDTH), *norms[:1], nn.Tanh())
        self.embedding_global = nn.Sequential(nn.Linear(WIDTH, WIDTH), *norms[1:], nn.Tanh())
        self.embedding_common = nn.Sequential(nn.Linear(WIDTH, 1))

    def forward(self, tokens):
        local = self.embedding_local(tokens[None])[0]
        mean = self.embedding_global(tokens.mean(0)[None])
        weights = self.embedding_common(local * mean).softmax(0)
        return l2norm((weights * tokens).sum(0))


class Graph(nn.Module):
    """GraphReasoning."""

    def __init__(self):
        super().__init__()
        for name in ('graph_query_w', 'graph_key_w', 'sim_graph_w'):
            setattr(self, name, nn.Linear(DIM, DIM))

    def forward(self, nodes):
        edges = (self.graph_query_w(nodes) @ self.graph_key_w(nodes).T).softmax(-1)
        return self.sim_graph_w(edges @ nodes).relu()


class Filtration(nn.Module):
    """AttentionFiltration; in evaluation mode."""

    def __init__(self):
        super().__init__()
        self.attn_sim_w, self.bn = nn.Linear(DIM, 1), nn.BatchNorm1d(1)

    def forward(self, nodes):
        weights = self.bn(self.attn_sim_w(nodes)).sigmoid()
        return l2norm((weights / weights.sum() * nodes).sum(0))


class Similarity(nn.Module):
    """EncoderSimilarity of one image and one caption."""

    def __init__(self, reasoning):
        super().__init__()
        self.v_global_w = Attention([nn.BatchNorm1d(REGIONS), nn.BatchNorm1d(WIDTH)])
        self.t_global_w = Attention([])
        self.sim_tranloc_w, self.sim_tranglo_w = nn.Linear(WIDTH, DIM), nn.Linear(WIDTH, DIM)
        self.sim_eval_w = nn.Linear(DIM, 1)
        if reasoning == 'SGR':
            self.SGR_module = nn.ModuleList(Graph() for _ in range(3))
        else:
            self.SAF_module = Filtration()

    def forward(self, regions, words):
        scores = nn.functional.leaky_relu(regions @ words.T, 0.1)
        weights = (9 * l2norm(scores)).softmax(0)
        local = l2norm(self.sim_tranloc_w((l2norm(weights.T @ regions) - words) ** 2))
        difference = self.v_global_w(regions) - self.t_global_w(words)
        nodes = torch.cat([l2norm(self.sim_tranglo_w(difference**2))[None], local])
        if hasattr(self, 'SAF_module'):
            return self.sim_eval_w(self.SAF_module(nodes))
        for step in self.SGR_module:
            nodes = step(nodes)
        return self.sim_eval_w(nodes[0])


@pytest.fixture(params=['SAF', 'SGR'])
def reasoning(request):
    return request.param


@pytest.fixture
def source(reasoning, tmp_path):
    """The three parts of SGRAF and their file."""
    torch.manual_seed(0)
    image = nn.ModuleDict({'fc': nn.Linear(FEATURES, WIDTH)})
    parts = [part.eval() for part in (image, Text(), Similarity(reasoning))]
    for part in parts:
        for name, value in part.state_dict().items():
            if value.is_floating_point():
                (nn.init.uniform_(value, 0.5, 1.5) if 'var' in name else nn.init.normal_(value))
    content = {
        'epoch': 3,
        'model': [part.state_dict() for part in parts],
        'best_rsum': np.float64(490.9),
        'opt': argparse.Namespace(module_name=reasoning, num_epochs=40, margin=0.2),
        'Eiters': 1000,
    }
    torch.save(content, tmp_path / 'model_best.pth.tar')
    return parts


@pytest.fixture
def config_file(reasoning, tmp_path):
    """Writes the config of the same model at the tiny size."""

    def make(words=WORDS, **similarity):
        names = ['<pad>', '<start>', '<end>', '<unk>', *(f'w{i}' for i in range(words - 4))]
        indices = {name: index for index, name in enumerate(names)}
        (tmp_path / 'vocab.json').write_text(json.dumps({'word2idx': indices}))
        model = dict(
            type='ImageTextMatcher',
            data_preprocessor=dict(
                type='RegionTextPreprocessor',
                tokenizer=dict(vocabulary=str(tmp_path / 'vocab.json')),
            ),
            image_encoder=dict(type='RegionEncoder', feature_dims=FEATURES, embed_dims=WIDTH),
            text_encoder=dict(
                type='GruTextEncoder', vocab_size=None, word_dims=5, embed_dims=WIDTH
            ),
            similarity={
                **dict(
                    type='SGRAFSimilarity',
                    dim=DIM,
                    reasoning=dict(type=reasoning),
                    global_pooling=dict(type='SelfAttentionGlobal', regions=REGIONS),
                ),
                **similarity,
            },
            loss=dict(type='TripletLoss'),
        )
        Config(dict(model=model)).dump(tmp_path / 'tiny.py')
        return tmp_path / 'tiny.py'

    return make


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, 'argv', ['sgraf.py', *map(str, arguments)])
    sgraf.main()


@torch.no_grad()
def test_converted_weights_compute_what_sgraf_computes(source, config_file, tmp_path, monkeypatch):
    config, out = config_file(), tmp_path / 'new' / 'out.pth'
    run(monkeypatch, tmp_path / 'model_best.pth.tar', out, '--config', config)
    model = MODELS.build(Config.fromfile(config).model).eval()
    model.load_state_dict(torch.load(out, weights_only=True)['state_dict'])
    features, lengths = torch.randn(3, REGIONS, FEATURES), (5, 3)
    ids = torch.randint(4, WORDS, (2, 5))
    ids[1, 3:] = 0
    regions = model.encode_image(Regions(features, torch.ones(3, REGIONS, dtype=torch.bool)))
    words = model.encode_text(ids, torch.arange(5) < torch.tensor(lengths)[:, None])
    actual = model.similarity(regions, words)
    image, text, similarity = source
    for i in range(3):
        for t, length in enumerate(lengths):
            expected = similarity(l2norm(image['fc'](features[i])), text(ids[t, :length]))
            torch.testing.assert_close(actual[i, t], expected[0], atol=1e-5, rtol=1e-5)


def test_a_downloaded_file_takes_the_place_of_the_model(source, config_file, tmp_path, monkeypatch):
    monkeypatch.setenv('XMODAL_HOME', str(tmp_path / 'cache'))
    config = config_file()
    entry = ModelEntry('tiny', 'tiny', str(config), 'retrieval', 'SGRAF', '', converter='sgraf')
    config = Config.fromfile(config)
    converted = find_checkpoint(entry, config, tmp_path / 'model_best.pth.tar')
    weights = torch.load(converted, weights_only=True)['state_dict']
    assert weights.keys() == MODELS.build(config.model).state_dict().keys()
    torch.testing.assert_close(weights['image_encoder.projection.weight'], source[0]['fc'].weight)
    torch.save({'state_dict': weights}, tmp_path / 'own.pth')
    assert find_checkpoint(entry, config, tmp_path / 'own.pth') == tmp_path / 'own.pth'


def test_a_config_of_another_model_is_an_error(source, config_file, tmp_path, monkeypatch):
    config = config_file(global_pooling=None)
    with pytest.raises(
        ValueError, match='only the file has similarity.global_pooling.*another model'
    ):
        run(monkeypatch, tmp_path / 'model_best.pth.tar', tmp_path / 'out.pth', '--config', config)
    assert not (tmp_path / 'out.pth').exists()


def test_another_vocabulary_is_an_error(source, config_file, tmp_path, monkeypatch):
    config = config_file(words=WORDS + 1)
    with pytest.raises(
        ValueError, match=r'embedding.weight has the shape \(12, 5\).*another vocabulary'
    ):
        run(monkeypatch, tmp_path / 'model_best.pth.tar', tmp_path / 'out.pth', '--config', config)


@pytest.mark.parametrize('content', [{'state_dict': {}}, {'model': {'a': torch.zeros(1)}}])
def test_a_file_of_another_model_is_an_error(config_file, tmp_path, monkeypatch, content):
    torch.save(content, tmp_path / 'other.pth')
    with pytest.raises(ValueError, match='is this a file of SGRAF'):
        out = tmp_path / 'out.pth'
        run(monkeypatch, tmp_path / 'other.pth', out, '--config', config_file())


def test_a_weight_of_another_model_is_an_error():
    with pytest.raises(ValueError, match="'rnn.weight' is not a weight of SGRAF"):
        converters.sgraf.rename(1, 'rnn.weight')


def test_an_existing_file_is_not_overwritten(tmp_path, monkeypatch):
    (tmp_path / 'out.pth').write_text('mine')
    with pytest.raises(FileExistsError, match='out=.* already exists'):
        run(monkeypatch, 'any.pth', tmp_path / 'out.pth', '--config', 'any.py')
