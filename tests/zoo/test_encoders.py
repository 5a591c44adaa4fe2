"""Encoders by name, where a config takes weights."""

import sys

import pytest
import torch
from transformers import BertTokenizer

from xmodal.engine.launch import read_config
from xmodal.registry import MODELS
from xmodal.weights import find_weights
from xmodal.zoo import encoders
from xmodal.zoo.folder import find_folder


@pytest.mark.parametrize('kind', ['image', 'text'])
def test_an_encoder_is_downloaded_and_converted_once(kind, tmp_path, monkeypatch):
    sys.path.append('tests/tools')
    from test_data2vec2_converter import image_weights, text_weights

    monkeypatch.setenv('XMODAL_HOME', str(tmp_path / 'cache'))
    weights = image_weights() if kind == 'image' else text_weights()
    torch.save({'model': weights}, tmp_path / 'released.pt')
    asked = []

    def download(url, file):
        asked.append((url, file.name))
        return tmp_path / 'released.pt'

    convert = encoders.once
    monkeypatch.setattr(encoders, 'download', download)
    monkeypatch.setattr('xmodal.converters.data2vec2.build_bert', fewer_heads('build_bert'))
    monkeypatch.setattr(
        'xmodal.converters.data2vec2.build_image_encoder', fewer_heads('build_image_encoder')
    )
    name = {'image': 'data2vec2-base-imagenet', 'text': 'data2vec2-base-text'}[kind]
    found = find_weights(f'zoo:{name}', 'pretrained')
    folder = tmp_path / 'cache' / 'converted'
    assert found.startswith(str(folder / name)) and len(list(folder.glob('*'))) == 2  # and a lock
    assert asked[0][0].startswith('https://dl.fbaipublicfiles.com/fairseq/data2vec2/')
    if kind == 'image':
        state = torch.load(found, weights_only=True)['state_dict']
        expected = weights['modality_encoders.IMAGE.local_encoder.proj.weight']
        assert torch.equal(state['image_encoder.vit.patch_embed.proj.weight'], expected)
    else:
        from transformers import BertModel

        words = BertModel.from_pretrained(found).embeddings.word_embeddings.weight
        assert torch.equal(
            words, weights['modality_encoders.TEXT.local_encoder.embed_tokens.weight']
        )
    monkeypatch.setattr(encoders, 'once', lambda file, make: convert(file, pytest.fail))
    assert find_weights(f'zoo:{name}', 'pretrained') == found
    assert len(asked) == 1  # the download is needed no more: it may be deleted


def fewer_heads(name):
    """A builder for the tiny weights, which have two heads where base models have twelve."""
    from xmodal.converters import data2vec2

    build = getattr(data2vec2, name)
    return lambda renamed, blocks, heads: build(renamed, blocks, 2)


def test_a_name_of_no_encoder_is_an_error():
    with pytest.raises(FileNotFoundError, match="pretrained='zoo:x': .* only .*data2vec2-base"):
        find_weights('zoo:x', 'pretrained')


def test_a_model_of_the_package_gives_its_vocabulary_wherever_one_is(tmp_path, monkeypatch):
    file = tmp_path / 'mine.py'
    file.write_text("""
_base_ = 'xmodal::acerpe/pretrain_shapes.py'
load_from = 'acerpe-shapes'
model = dict(data_preprocessor=dict(tokenizer=dict(pretrained='zoo:acerpe-shapes')))
""")
    shipped = find_folder('acerpe-shapes').resolve()
    monkeypatch.chdir(tmp_path)
    config = read_config(str(file))
    found = MODELS.build(config.model.data_preprocessor).tokenize(['a red ring', 'one zebra'])
    expected = BertTokenizer(str(shipped / 'vocab.txt'))(['a red ring', 'one zebra'])['input_ids']
    assert [ids[mask].tolist() for ids, mask in zip(*found, strict=True)] == expected
