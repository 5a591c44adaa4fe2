"""Text encoders of transformers, compared with its own outputs; tokenizers that belong to them."""

from types import SimpleNamespace

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    AutoModel,
    BertConfig,
    CLIPConfig,
    CLIPModel,
    MPNetConfig,
    PreTrainedTokenizer,
    PreTrainedTokenizerFast,
    RobertaConfig,
    SiglipConfig,
    SiglipModel,
)  # fmt: skip

from xmodal.errors import ConfigError
from xmodal.models.base import build_tokenizer, check_vocabulary
from xmodal.models.base import tokenizer as tokenizer_module
from xmodal.models.base.tokenizer import fills_table
from xmodal.registry import MODELS

WORDS = [f'w{i}' for i in range(20)]
SMALL = dict(
    hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
    max_position_embeddings=12,
)  # fmt: skip
# Of each architecture: a model of transformers, and its special tokens at the ends of a text.
KINDS = {
    'mpnet': (MPNetConfig, ('<s>', '</s>'), '<pad>'),
    'roberta': (RobertaConfig, ('<s>', '</s>'), '<pad>'),
    'clip': (CLIPConfig, ('<|startoftext|>', '<|endoftext|>'), '<|endoftext|>'),
    'siglip': (SiglipConfig, (None, '</s>'), '</s>'),
}


@pytest.fixture
def folder(tmp_path):
    """Writes a model of a kind with its tokenizer: the folder, and the model."""

    def write(kind):
        make, (first, last), padding = KINDS[kind]
        names = ['<unk>', padding, *dict.fromkeys(x for x in (first, last) if x and x != padding)]
        vocabulary = {word: i for i, word in enumerate([*names, *WORDS])}
        backend = Tokenizer(models.WordLevel(vocabulary, unk_token='<unk>'))
        backend.pre_tokenizer = pre_tokenizers.Whitespace()
        single = ' '.join(filter(None, (first, '$A', last)))
        ends = [(x, vocabulary[x]) for x in (first, last) if x]
        backend.post_processor = processors.TemplateProcessing(single=single, special_tokens=ends)
        PreTrainedTokenizerFast(
            tokenizer_object=backend, unk_token='<unk>', pad_token=padding, eos_token=last,
            bos_token=first,
        ).save_pretrained(tmp_path / kind)  # fmt: skip
        ids = dict(
            vocab_size=len(vocabulary),
            pad_token_id=1,
            bos_token_id=vocabulary.get(first),
            eos_token_id=vocabulary[last],
        )
        if kind in ('mpnet', 'roberta'):
            model = AutoModel.from_config(make(**SMALL, **ids), add_pooling_layer=False)
        else:
            config = make(text_config=SMALL | ids | dict(projection_size=16))
            config.vision_config.update(dict(num_hidden_layers=1, hidden_size=24, image_size=32))
            model = (CLIPModel if kind == 'clip' else SiglipModel)(config)
        model.eval().save_pretrained(tmp_path / kind)
        return str(tmp_path / kind), model.eval()

    return write


@pytest.mark.parametrize('kind', KINDS)
@torch.no_grad()
def test_tokens_are_those_of_transformers_and_the_first_one_sums_up(kind, folder):
    path, model = folder(kind)
    encoder = MODELS.build(dict(type='TransformersTextEncoder', config=path, pretrained=path))
    encoder.init_weights()
    texts = ['w1 w2 w3 w4', 'w5']
    tokenizer = build_tokenizer(path, family='auto')
    inputs = tokenizer(texts, padding='longest', return_tensors='pt')
    ids, mask = inputs['input_ids'], inputs['attention_mask'].bool()
    found = encoder.eval()(ids, mask).embeddings
    assert found.shape == (2, ids.shape[1], 16) == (*ids.shape, encoder.embed_dims)
    own = PreTrainedTokenizerFast.from_pretrained(path)
    for row, text in enumerate(texts):  # one by one, as nobody has to pad
        alone = own(text, return_tensors='pt')
        if kind == 'siglip':
            alone = own(text, return_tensors='pt', padding='max_length', max_length=12)
        text_model = getattr(model, 'text_model', model)
        output = text_model(alone['input_ids'])
        count = int(mask[row].sum())
        if kind == 'siglip':
            tokens = torch.cat([output.pooler_output, output.last_hidden_state[0, : count - 1]])
        else:
            tokens = output.last_hidden_state[0]
        if kind == 'clip':
            tokens = torch.cat([output.pooler_output, tokens[1:]])
        assert len(tokens) == count
        torch.testing.assert_close(found[row, :count], tokens, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('kind', ['gpt2', 'bloom', 'xglm', 'mpt', 'mamba'])
@torch.no_grad()
def test_a_language_model_sums_a_text_up_in_its_last_token(kind):
    sizes = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, vocab_size=24)
    if kind == 'xglm':
        sizes |= dict(ffn_dim=16)
    config = dict(model_type=kind, bos_token_id=1, eos_token_id=1, pad_token_id=0, **sizes)
    encoder = MODELS.build(dict(type='TransformersTextEncoder', config=config)).eval()
    ids = torch.tensor([[1, 5, 6, 1], [1, 7, 1, 0]])
    found = encoder(ids, torch.arange(4) < torch.tensor([[4], [3]])).embeddings
    for row, count in ((0, 4), (1, 3)):
        tokens = encoder.model(ids[row : row + 1, :count]).last_hidden_state[0]
        torch.testing.assert_close(found[row, 0], tokens[-1])
        torch.testing.assert_close(found[row, 1:count], tokens[1:])
    assert set(encoder.layer_distances().values()) == {0, 1, 2, 3}


@pytest.mark.parametrize('options', [dict(padding_side='left'), dict(pad_token=None)])
def test_texts_are_padded_at_their_ends_by_any_tokenizer(folder, tmp_path, options):
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder('roberta')[0], **options)
    tokenizer.save_pretrained(tmp_path / 'own')
    preprocessor = emkum('', str(tmp_path / 'own'))['data_preprocessor']
    ids, mask = MODELS.build(preprocessor).tokenize(['w1 w2', 'w1'])
    assert mask.tolist() == [[True] * 4, [True] * 3 + [False]]
    for row, text in enumerate(('w1 w2', 'w1')):
        assert ids[row][mask[row]].tolist() == tokenizer(text)['input_ids']


def test_layers_are_numbered_and_may_be_left_out(folder):
    path, _ = folder('mpnet')
    encoder = MODELS.build(dict(type='TransformersTextEncoder', config=path, num_layers=1))
    assert set(encoder.layer_distances().values()) == {0, 1, 2}  # relative positions are the last
    assert len(encoder.model.encoder.layer) == 1
    ids = torch.full((1, 3), 5)
    encoder(ids, ids > 0).embeddings[..., 0].sum().backward()
    assert encoder.word_embeddings.grad.any(1).nonzero().tolist() == [[5]]


def test_a_tokenizer_that_leaves_out_its_mask_tells_words_from_padding(folder):
    path, _ = folder('siglip')
    own = PreTrainedTokenizerFast.from_pretrained(path, model_input_names=['input_ids'])
    own.save_pretrained(path)  # as SigLIP's released files
    assert 'attention_mask' not in own(['w1'])
    preprocessor = MODELS.build(emkum(path, path)['data_preprocessor'])
    assert preprocessor.tokenize(['w1 w2', 'w1'])[1].sum(1).tolist() == [4, 3]


class Letters(PreTrainedTokenizer):
    """A tokenizer in Python, as SigLIP's on top of SentencePiece."""

    def __init__(self):
        self.ids = {'<unk>': 0, '</s>': 1, 'a': 2, 'b': 3}
        super().__init__(unk_token='<unk>', eos_token='</s>', pad_token='</s>')

    @property
    def vocab_size(self):
        return len(self.ids)

    def get_vocab(self):
        return dict(self.ids)

    def _tokenize(self, text):
        return list(text)

    def _convert_token_to_id(self, token):
        return self.ids.get(token, 0)


def test_a_tokenizer_in_python_reads_unknown_words_and_gets_no_first_token(monkeypatch, tmp_path):
    files = SimpleNamespace(from_pretrained=lambda folder: Letters())
    monkeypatch.setitem(tokenizer_module.FAMILIES, 'auto', files)
    options = dict(pretrained=str(tmp_path), family='auto')
    preprocessor = emkum('', '')['data_preprocessor'] | dict(
        tokenizer=options | dict(add_cls=False)
    )
    ids, mask = MODELS.build(preprocessor).tokenize(['xa', 'b'])
    assert ids.tolist() == [[0, 2], [3, 1]] and mask.tolist() == [[True, True], [True, False]]
    with pytest.raises(ConfigError, match=r'is a Letters, written in Python: expected a fast'):
        build_tokenizer(**options)


def test_a_missing_library_of_a_tokenizer_is_a_sentence(monkeypatch, tmp_path):
    def fail(folder):
        raise ImportError('SiglipTokenizer requires the SentencePiece library')

    monkeypatch.setitem(tokenizer_module.FAMILIES, 'auto', SimpleNamespace(from_pretrained=fail))
    with pytest.raises(ConfigError, match=r"pretrained='.*': SiglipTokenizer requires the Sent"):
        build_tokenizer(str(tmp_path), family='auto')


@pytest.mark.parametrize('family', ['auto', 'bert', 'roberta'])
def test_a_folder_of_a_model_without_its_tokenizer_is_a_sentence(tmp_path, family):
    """Transformers makes a tokenizer of the special words."""
    CLIPConfig().save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match=r"pretrained='.*' has no tokenizer, .*: save the files"):
        build_tokenizer(str(tmp_path), family=family)


def emkum(path, tokenizer):
    """A model with an encoder and a tokenizer."""
    return dict(
        type='EmkumModel',
        data_preprocessor=dict(
            type='ImageTextPreprocessor', mean=[127.5] * 3, std=[63.75] * 3, max_length=8,
            tokenizer=dict(pretrained=tokenizer, family='auto'),
        ),
        image_encoder=dict(
            type='ViTImageEncoder', image_size=16, patch_size=8, embed_dim=16, num_heads=2, depth=1
        ),
        text_encoder=dict(type='TransformersTextEncoder', config=path),
        shared_block=dict(num_heads=2, feedforward_dims=16),
    )  # fmt: skip


def test_a_tokenizer_of_another_encoder_is_a_sentence(folder, tmp_path):
    siglip, roberta = folder('siglip')[0], folder('roberta')[0]
    assert MODELS.build(emkum(siglip, siglip)) and MODELS.build(emkum(roberta, roberta))
    own = PreTrainedTokenizerFast.from_pretrained(roberta)
    own.add_tokens([f'more{i}' for i in range(5)])
    own.save_pretrained(tmp_path / 'larger')
    with pytest.raises(ValueError, match=r'has 29 words but .*vocab_size is 24'):
        MODELS.build(emkum(roberta, str(tmp_path / 'larger')))
    own = PreTrainedTokenizerFast.from_pretrained(roberta)
    own.pad_token = '<unk>'
    own.save_pretrained(tmp_path / 'padded')
    with pytest.raises(ValueError, match=r"\[PAD\] is word 0 and the text encoder's word 1"):
        MODELS.build(emkum(roberta, str(tmp_path / 'padded')))
    MPNetConfig(**SMALL, vocab_size=500, pad_token_id=1).save_pretrained(tmp_path / 'wide')
    with pytest.raises(ValueError, match='has 24 words and the text encoder 500'):
        MODELS.build(emkum(str(tmp_path / 'wide'), roberta))
    BertConfig(**SMALL, vocab_size=24, pad_token_id=0).save_pretrained(roberta)
    assert MODELS.build(emkum(roberta, roberta))  # multilingual MiniLM and E5 are published so


@pytest.mark.parametrize(
    'words, rows, fits',
    [
        (151_665, 151_936, True),  # Qwen 2.5
        (28_996, 30_522, False),  # BERT cased and uncased
        (49_408, 50_265, False),  # CLIP and RoBERTa
        (30_527, 30_522, False),  # MPNet and BERT
    ],
)
def test_published_tables_have_rows_to_spare(words, rows, fits):
    assert fills_table(words, rows) == fits


def test_wrong_configurations_and_weights_are_sentences(folder, tmp_path):
    encoder = dict(type='TransformersTextEncoder')
    with pytest.raises(FileNotFoundError, match=r"text_encoder\.config='.*nowhere' is neither"):
        MODELS.build({**encoder, 'config': str(tmp_path / 'nowhere')})
    with pytest.raises(ValueError, match='its model_type is none'):
        MODELS.build({**encoder, 'config': dict(model_type='perceptron')})
    with pytest.raises(ValueError, match="is a 'vit', expected a text encoder"):
        MODELS.build({**encoder, 'config': dict(model_type='vit')})
    with pytest.raises(ValueError, match="is a 't5', an encoder with a decoder"):
        MODELS.build({**encoder, 'config': dict(model_type='t5')})
    with pytest.raises(ValueError, match="is a 'chinese_clip_text_model', of which"):
        MODELS.build({**encoder, 'config': dict(model_type='chinese_clip')})
    path, _ = folder('mpnet')
    wrong = MODELS.build({**encoder, 'config': path, 'num_layers': 3, 'pretrained': path})
    with pytest.raises(ValueError, match=r'lacks 16 weights of a MPNetModel .*layer\.2'):
        wrong.init_weights()


def test_a_plug_in_with_padded_positions_need_not_say_how_many_there_are():
    encoder = torch.nn.Module()
    encoder.vocab_size = 20
    encoder.position_embeddings = torch.nn.Embedding(9, 4, padding_idx=0)
    check_vocabulary(SimpleNamespace(vocab_size=20, max_length=99), encoder)


def test_masked_words_need_a_tokenizer_that_masks(config, folder):
    path, _ = folder('clip')
    tiny = config(heads=('itc', 'mlm'))
    tiny['data_preprocessor']['tokenizer'] = dict(pretrained=path, family='auto')
    tiny['backbone']['text_encoder'] = dict(type='TransformersTextEncoder', config=path)
    tiny['backbone']['image_encoder']['embed_dim'] = tiny['backbone']['fusion']['embed_dims'] = 16
    with pytest.raises(ValueError, match=r'tokenizer has no \[MASK\].*heads\.mlm=None'):
        MODELS.build(tiny)


@pytest.mark.parametrize(('kind', 'longest'), [('roberta', 10), ('mpnet', 10), ('clip', 12)])
def test_texts_are_as_long_as_positions_allow_which_some_count_from_padding_on(
    kind, longest, folder
):
    path, _ = folder(kind)
    model = emkum(path, path)
    model['data_preprocessor']['max_length'] = longest
    encoder = MODELS.build(model).text_encoder
    ids = torch.full((1, longest + 1), 5)
    encoder(ids[:, 1:], ids[:, 1:] > 0)  # transformers has 12 positions
    with pytest.raises((IndexError, RuntimeError, ValueError)):
        encoder(ids, ids > 0)
    model['data_preprocessor']['max_length'] = longest + 1
    with pytest.raises(ValueError, match=f'max_length={longest + 1}, but .* has {longest} posit'):
        MODELS.build(model)
