"""The start weights of ALBEF and ACE-RPE: all of a BERT, tensor by tensor."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM, BertModel

from xmodal.models.fusion import FusionEncoder
from xmodal.models.heads import MLMHead
from xmodal.registry import MODELS

TINY = dict(
    vocab_size=40,
    hidden_size=16,
    num_hidden_layers=4,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=8,
)
LAYER = {
    'self_attention.q_proj': 'attention.self.query',
    'self_attention.k_proj': 'attention.self.key',
    'self_attention.v_proj': 'attention.self.value',
    'self_attention.out_proj': 'attention.output.dense',
    'self_norm': 'attention.output.LayerNorm',
    'feed_forward.fc1': 'intermediate.dense',
    'feed_forward.fc2': 'output.dense',
    'feed_forward.norm': 'output.LayerNorm',
}


def save_bert(folder, kind=BertForMaskedLM, **others):
    """A BERT whose parameters are all random, norms and biases too, saved to ``folder``."""
    bert = kind(BertConfig(**{**TINY, **others}))
    for parameter in bert.parameters():
        torch.nn.init.normal_(parameter)
    bert.save_pretrained(folder)
    return bert


@pytest.fixture
def start(config):
    """Builds a model of the width of the BERT, and its start weights."""

    def make(folder, streams='both', first_layer=2, mlm=None, **fusion):
        settings = config(streams=streams)
        parts = settings['backbone']
        parts['image_encoder']['embed_dim'] = 16
        parts['text_encoder'] = dict(
            type='BertTextEncoder', config=TINY, num_layers=2, pretrained=str(folder)
        )
        start = dict(embed_dims=16, pretrained=str(folder), first_layer=first_layer)
        parts['fusion'].update({**start, **fusion})
        settings['heads']['mlm'] = dict(type='MLMHead', pretrained=str(mlm or folder))
        model = MODELS.build(settings)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        model.init_weights()
        return model, before

    return make


def require_start(model, bert):
    """Each parameter of text encoder, fusion encoder and MLM head is the BERT's own."""
    theirs, ours = bert.state_dict(), model.state_dict()
    expected = {}
    for parameter in ('weight', 'bias'):
        for index in (0, 1):
            for name, bert_name in LAYER.items():
                source = f'bert.encoder.layer.{2 + index}.{bert_name}.{parameter}'
                expected[f'backbone.fusion.layers.{index}.{name}.{parameter}'] = source
        transform = 'cls.predictions.transform'
        expected[f'heads.mlm.transform.{parameter}'] = f'{transform}.dense.{parameter}'
        expected[f'heads.mlm.norm.{parameter}'] = f'{transform}.LayerNorm.{parameter}'
    expected['heads.mlm.bias'] = 'cls.predictions.bias'
    text = 'backbone.text_encoder.'
    in_text = [name.removeprefix(text) for name in ours if name.startswith(text)]
    expected |= {f'{text}{name}': name for name in in_text}
    for name, source in expected.items():
        assert ours[name].equal(theirs[source]), name
    return expected


@pytest.mark.parametrize('streams', ['both', 'text'])
def test_fusion_and_mlm_head_start_from_the_rest_of_the_bert(tmp_path, start, streams):
    bert = save_bert(tmp_path)
    model, before = start(tmp_path, streams)
    loaded = require_start(model, bert)
    for part in ('backbone.fusion.', 'heads.mlm.'):
        rest = [name for name in before if name.startswith(part) and name not in loaded]
        assert all('.cross_' in name for name in rest)
        assert all(model.state_dict()[name].equal(before[name]) for name in rest)


def test_both_copies_of_a_layer_for_two_images_start_from_the_same_layer(tmp_path):
    bert = save_bert(tmp_path)
    fusion = FusionEncoder(
        2, 16, 2, streams='text', pretrained=str(tmp_path), first_layer=1, share_two_images=False
    )
    fusion.init_weights()
    for index, layer in enumerate(fusion.layers):
        source = bert.bert.encoder.layer[1 + index // 2]
        for name, bert_name in LAYER.items():
            assert layer.get_submodule(name).weight.equal(source.get_submodule(bert_name).weight)


def test_the_momentum_teacher_starts_equal_to_the_model(tmp_path, start):
    save_bert(tmp_path)
    model, _ = start(tmp_path)
    online, teacher = model.online_modules().state_dict(), model.teacher.module.state_dict()
    assert any('mlm' in name for name in teacher) and online.keys() == teacher.keys()
    for name, value in online.items():
        assert value.equal(teacher[name]), name


def test_a_file_with_the_names_of_bert_base_uncased_is_read(tmp_path, start):
    bert = save_bert(tmp_path)
    weights = load_file(tmp_path / 'model.safetensors')
    weights.pop('cls.predictions.decoder.bias', None)
    weights = {
        name.replace('LayerNorm.weight', 'LayerNorm.gamma').replace(
            'LayerNorm.bias', 'LayerNorm.beta'
        ): value
        for name, value in weights.items()
    }
    weights['bert.pooler.dense.weight'] = torch.zeros(16, 16)
    weights['cls.seq_relationship.bias'] = torch.zeros(2)
    save_file(weights, tmp_path / 'model.safetensors', {'format': 'pt'})
    require_start(start(tmp_path)[0], bert)


def test_what_was_loaded_and_what_was_not_is_logged(tmp_path, start, monkeypatch):
    lines = []
    monkeypatch.setattr('xmodal.models.layers.bert.print_log', lambda text, **_: lines.append(text))
    save_bert(tmp_path)
    start(tmp_path)
    mlm, fusion = lines
    assert 'loaded 5 tensors (transform, norm, bias)' in mlm
    assert 'loaded 32 tensors of layers 2 to 3 (feed_forward, self_attention, self_norm)' in fusion
    assert fusion.endswith('initial weights kept: cross_attention, cross_norm')


@pytest.mark.parametrize(
    ('others', 'fusion', 'message'),
    [
        ({}, dict(first_layer=3), r'has 4 layers, and layers 3 to 4 .* of at least 5 layers'),
        (dict(hidden_size=32), {}, 'hidden_size=32, expected 16'),
        (dict(num_attention_heads=4), {}, 'num_attention_heads=4, expected 2'),
        (dict(intermediate_size=32), {}, 'intermediate_size=32, expected 64'),
    ],
    ids=['too few layers', 'width', 'heads', 'feed-forward'],
)
def test_a_bert_that_does_not_fit_is_an_error_that_says_what_fits(
    tmp_path, start, others, fusion, message
):
    save_bert(tmp_path / 'fits')
    save_bert(tmp_path / 'other', **others)
    pretrained = dict(pretrained=str(tmp_path / 'other'), **fusion)
    with pytest.raises(ValueError, match=rf'fusion\.pretrained=.*{message}'):
        start(tmp_path / 'fits', **pretrained)


def test_a_bert_without_prediction_head_or_of_another_vocabulary_is_an_error(tmp_path):
    save_bert(tmp_path, BertModel)
    with pytest.raises(ValueError, match=r'mlm\.pretrained=.* lacks .* of a BertForMaskedLM'):
        MLMHead(16, 40, pretrained=str(tmp_path)).init_weights()
    save_bert(tmp_path, vocab_size=50)
    with pytest.raises(ValueError, match='vocab_size=50, expected 40'):
        MLMHead(16, 40, pretrained=str(tmp_path)).init_weights()


def test_building_reads_no_weights_and_a_missing_folder_is_named(tmp_path, config):
    settings = config()
    settings['backbone']['fusion']['pretrained'] = str(tmp_path)
    model = MODELS.build(settings)
    with pytest.raises(FileNotFoundError, match=r'fusion\.pretrained=.* is neither'):
        model.init_weights()
