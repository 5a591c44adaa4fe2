"""The adapter of ALBEF's evaluation, on a stand-in of its `Retrieval.py`."""

import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from xmodal.benchmark.albef_retrieval import PublicRetrieval
from xmodal.errors import ConfigError
from xmodal.structures import PackedTexts

# The imports and the interface of the public code; a score is made of all that it is given.
STAND_IN = """
import ruamel_yaml as yaml
import torch
from models.tokenization_bert import BertTokenizer
from dataset import create_dataset, create_sampler, create_loader
from scheduler import create_scheduler
from optim import create_optimizer


def evaluation(model, data_loader, tokenizer, device, config):
    assert not args.distributed
    texts = data_loader.dataset.text
    text = tokenizer(texts[0:2], padding='max_length', max_length=30, return_tensors='pt')
    text = text.to(device)
    assert text.input_ids.shape == text.attention_mask.shape == (2, 30)
    images = torch.cat([model.visual_encoder(image) for image, _ in data_loader])
    assert len(data_loader.dataset.image) == len(images)
    words = (text.input_ids * text.attention_mask).sum(1)
    i2t = images.sum((1, 2))[:, None] + words
    return i2t.numpy(), config['k_test'] * i2t.T.numpy()
"""


@pytest.fixture
def peer():
    encoder = SimpleNamespace(bert=nn.Identity())
    heads = {name: nn.Identity() for name in ('vision_proj', 'text_proj', 'itm_head')}
    return SimpleNamespace(text_encoder=encoder, **heads)


def test_it_gets_encoded_images_and_padded_word_pieces(tmp_path, monkeypatch, peer):
    (tmp_path / 'Retrieval.py').write_text(STAND_IN)
    monkeypatch.syspath_prepend(tmp_path)
    before = sys.modules.get('optim')
    retrieval = PublicRetrieval(tmp_path, peer)
    monkeypatch.delitem(sys.modules, 'Retrieval')
    assert sys.modules.get('optim') is before
    images = torch.ones(3, 2, 4) * torch.arange(3)[:, None, None]
    texts = PackedTexts.from_list([torch.tensor([5, 6, 7]), torch.tensor([8])])
    gallery = retrieval.score(images, texts, torch.tensor([0, 1]), topk=2)
    expected = torch.tensor([[18.0, 8.0], [26.0, 16.0], [34.0, 24.0]])
    torch.testing.assert_close(gallery.scores, expected)
    torch.testing.assert_close(gallery.t2i_scores, 2 * expected)


def test_another_folder_is_an_error(tmp_path, peer):
    with pytest.raises(ConfigError, match=r'has no Retrieval\.py: expected ALBEF'):
        PublicRetrieval(tmp_path, peer)
