"""From regions and captions to a batch."""

import pytest
import torch
from mmengine.runner.checkpoint import load_state_dict

from xmodal.models.base.region_preprocessor import RegionTextPreprocessor
from xmodal.models.heads import MLMHead
from xmodal.structures import DataSample, Regions
from xmodal.vocabulary import SPECIAL_WORDS, Vocabulary


def vocabulary_file(folder, *words):
    file = folder / f'{"_".join(words)}.json'
    Vocabulary([*SPECIAL_WORDS, *words]).write(file)
    return str(file)


@pytest.fixture
def preprocessor(tmp_path):
    file = vocabulary_file(tmp_path, 'a', 'red', 'disc')
    return RegionTextPreprocessor(dict(vocabulary=file), max_length=5)


def sample(image_id, text):
    data_sample = DataSample()
    data_sample.image_id, data_sample.text = image_id, text
    return data_sample


def data(*texts):
    count = len(texts)
    regions = Regions(torch.rand(count, 3, 2), torch.ones(count, 3, dtype=torch.bool))
    samples = [sample(image_id, text) for image_id, text in enumerate(texts, 7)]
    return {'inputs': regions, 'data_samples': samples}


def test_words_become_padded_ids_and_long_captions_keep_their_end(preprocessor):
    batch = preprocessor(data('a red disc', 'disc', 'a red red disc'), training=True)['inputs']
    assert batch.input_ids.tolist() == [[1, 4, 5, 6, 2], [1, 6, 2, 0, 0], [1, 4, 5, 5, 2]]
    assert batch.attention_mask.tolist() == [[True] * 5, [True] * 3 + [False] * 2, [True] * 5]


@pytest.mark.parametrize('kind', ['words', 'pieces'])
def test_unknown_words_are_named(preprocessor, tmp_path, monkeypatch, kind):
    warnings = []
    patched = 'xmodal.models.base.preprocessor.print_log'
    monkeypatch.setattr(patched, lambda text, *_, **__: warnings.append(text))
    if kind == 'pieces':
        (tmp_path / 'v.txt').write_text('[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nred\ndisc\n')
        preprocessor = RegionTextPreprocessor(dict(pretrained=str(tmp_path / 'v.txt')))
    preprocessor.tokenize(['a red disc a red ring'])  # a few may be missing
    assert not warnings
    preprocessor.names_unknown_words = True
    preprocessor.tokenize(['a red ring', 'a disc', 'no ring'])
    assert warnings == ['not in the vocabulary of this model: ring, no']


def test_regions_are_passed_on_unchanged(preprocessor):
    loaded = data('a', 'red')
    batch = preprocessor(loaded)['inputs']
    assert torch.equal(batch.images.features, loaded['inputs'].features)
    assert batch.images.attention_mask.all() and batch.images.boxes is None


def test_in_test_mode_the_captions_of_an_image_are_consecutive_rows(preprocessor):
    batch = preprocessor(data(['a', 'red'], ['disc'], ['a', 'a', 'a']))['inputs']
    assert batch.image_ids.tolist() == [7, 8, 9]
    assert batch.text_image_ids.tolist() == [7, 7, 8, 9, 9, 9]
    assert batch.input_ids[:, 1].tolist() == [4, 5, 6, 4, 4, 4]
    ids = batch.text_ids.tolist()
    assert ids[0] == ids[3] == ids[5] and len(set(ids)) == 3


def test_texts_can_be_word_pieces_of_bert(tmp_path):
    file = tmp_path / 'vocab.txt'
    file.write_text('\n'.join(['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', 'a', 'red']))
    preprocessor = RegionTextPreprocessor(dict(pretrained=str(file)))
    batch = preprocessor(data('a red', 'red'))['inputs']
    assert batch.input_ids.tolist() == [[2, 5, 6, 3], [2, 6, 3, 0]]
    assert batch.attention_mask.sum(1).tolist() == [4, 3]
    assert preprocessor.vocab_size == 7
    assert preprocessor.words(batch.input_ids[0]) == ['[CLS]', 'a', 'red', '[SEP]']


def test_word_pieces_are_padded_by_their_own_token_wherever_it_is(tmp_path):
    file = tmp_path / 'vocab.txt'
    file.write_text('\n'.join(['a', 'red', '[UNK]', '[CLS]', '[SEP]', '[MASK]', '[PAD]']))
    preprocessor = RegionTextPreprocessor(dict(pretrained=str(file)))
    input_ids, mask = preprocessor.tokenize(['a', 'a red red'])
    assert input_ids.tolist() == [[3, 0, 4, 6, 6], [3, 0, 1, 1, 4]]
    assert mask.tolist() == [[True] * 3 + [False] * 2, [True] * 5]
    head = MLMHead(embed_dims=8, vocab_size=7, mask_probability=1.0)
    assert head.mask_words(input_ids, preprocessor).targets.sum() == 4, 'only a, a red red'


def test_ids_are_turned_back_into_words(preprocessor):
    batch = preprocessor(data('red blue'))['inputs']
    assert preprocessor.words(batch.input_ids[0]) == ['<start>', 'red', '<unk>', '<end>']


def test_a_checkpoint_of_another_vocabulary_is_refused(preprocessor, tmp_path):
    state = preprocessor.state_dict()
    load_state_dict(preprocessor, state)
    assert all(isinstance(value, torch.Tensor) for value in state.values())
    other = RegionTextPreprocessor(dict(vocabulary=vocabulary_file(tmp_path, 'red', 'a', 'disc')))
    assert other.vocab_size == preprocessor.vocab_size == 7
    with pytest.raises(ValueError, match=r'another vocabulary than \S*red_a_disc\.json'):
        load_state_dict(other, state)


def test_a_checkpoint_without_a_vocabulary_is_accepted(preprocessor):
    load_state_dict(preprocessor, {})


@pytest.mark.parametrize('training', [True, False])
def test_a_model_of_the_text_alone_gets_nothing_of_the_image(tmp_path, training):
    tokenizer = dict(vocabulary=vocabulary_file(tmp_path, 'a', 'red'))
    preprocessor = RegionTextPreprocessor(tokenizer, only='text')
    one, other = data('a red', 'red'), data('a red', 'red')
    mask = torch.tensor([[True, True, False], [True, False, False]])
    one['inputs'] = Regions(torch.rand(2, 3, 2), mask, torch.rand(2, 3, 4))
    other['inputs'] = Regions(torch.rand(2, 5, 2), torch.ones(2, 5) > 0, torch.rand(2, 5, 4))
    batches = [preprocessor(loaded, training)['inputs'] for loaded in (one, other)]
    for batch in batches:
        assert batch.images.features.tolist() == [[[0.0, 0.0]]] * 2
        assert batch.images.boxes.tolist() == [[[0.0, 0.0, 1.0, 1.0]]] * 2
        assert batch.images.attention_mask.tolist() == [[True]] * 2
        assert batch.images.labels is None
        assert batch.input_ids.tolist() == [[1, 4, 5, 2], [1, 5, 2, 0]]


@pytest.mark.parametrize('training', [True, False])
def test_a_model_of_the_image_alone_gets_nothing_of_the_text(tmp_path, training):
    file = tmp_path / 'vocab.txt'
    file.write_text('\n'.join(['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', 'a', 'red']))
    preprocessor = RegionTextPreprocessor(dict(pretrained=str(file)), only='image')
    loaded = data('a red', 'red')
    batch = preprocessor(loaded, training)['inputs']
    assert batch.input_ids.tolist() == [[2, 3]] * 2  # [CLS] [SEP]
    assert batch.attention_mask.all()
    assert torch.equal(batch.images.features, loaded['inputs'].features)


def test_a_modality_that_is_none_is_refused(tmp_path):
    tokenizer = dict(vocabulary=vocabulary_file(tmp_path, 'a'))
    with pytest.raises(ValueError, match="only='images', expected 'image', 'text' or None"):
        RegionTextPreprocessor(tokenizer, only='images')
