"""The matching model: wiring, losses, and what it refuses."""

import json

import pytest
import torch

from xmodal.registry import MODELS
from xmodal.structures import DataSample, ImageTextBatch, Regions, Tokens

SIMILARITIES = {
    'fusion': dict(
        type='SGRAFSimilarity',
        dim=6,
        reasoning=dict(type='SGR'),
        global_pooling=dict(
            type='SketchGlobal', pooling=dict(type='TEMDE', partitions=2, centroids=3, inner_dims=2)
        ),
    ),
    'pooled': dict(
        type='PooledSimilarity',
        proj_dims=5,
        image_pooling=dict(type='MeanPooling'),
        text_pooling=dict(type='MaxPooling'),
    ),
}


@pytest.fixture
def words_file(tmp_path):
    names = ['<pad>', '<start>', '<end>', '<unk>', 'a', 'red', 'dog', 'runs']
    numbers = {name: number for number, name in enumerate(names)}
    (tmp_path / 'vocab.json').write_text(json.dumps({'word2idx': numbers}))
    return str(tmp_path / 'vocab.json')


@pytest.fixture
def matcher(words_file):
    """Builds a tiny model."""

    def make(similarity='fusion', loss=None, text_dims=8, vocab_size=None):
        return MODELS.build(
            dict(
                type='ImageTextMatcher',
                data_preprocessor=dict(
                    type='RegionTextPreprocessor', tokenizer=dict(vocabulary=words_file)
                ),
                image_encoder=dict(type='RegionEncoder', feature_dims=7, embed_dims=8),
                text_encoder=dict(
                    type='GruTextEncoder',
                    vocab_size=vocab_size,
                    word_dims=5,
                    embed_dims=text_dims,
                    dropout=0.0,
                ),
                similarity=SIMILARITIES[similarity],
                loss=loss or dict(type='TripletLoss'),
            )
        )

    return make


@pytest.fixture
def regions_batch():
    """Four images, the first and the last of which are one, with a caption each."""
    lengths = torch.tensor([5, 3, 5, 4])
    mask = torch.arange(5) < lengths[:, None]
    image_ids = torch.tensor([1, 2, 3, 1])
    return ImageTextBatch(
        regions=Regions(torch.randn(4, 3, 7), torch.ones(4, 3, dtype=torch.bool)),
        input_ids=torch.randint(4, 8, (4, 5)).masked_fill(~mask, 0),
        attention_mask=mask,
        image_ids=image_ids,
        text_ids=torch.arange(4),
        text_image_ids=image_ids,
    )


@pytest.mark.parametrize('similarity', list(SIMILARITIES))
@pytest.mark.parametrize('loss', ['TripletLoss', 'InfoNCELoss'])
def test_the_loss_is_the_heads_over_all_pairs(matcher, regions_batch, similarity, loss):
    model = matcher(similarity, dict(type=loss)).eval()
    batch = regions_batch
    images = model.encode_image(batch.regions)
    texts = model.encode_text(batch.input_ids, batch.attention_mask)
    logits = torch.cat(
        [
            model.similarity(images, Tokens(texts.embeddings[t : t + 1, : int(own.sum())]))
            for t, own in enumerate(batch.attention_mask)
        ],
        1,
    )
    torch.testing.assert_close(model(batch), logits)
    same = torch.eye(4, dtype=torch.bool)
    same[0, 3] = same[3, 0] = True
    scores = logits if loss == 'InfoNCELoss' or similarity == 'pooled' else logits.sigmoid()
    expected = model.head.loss(scores, same)
    found = model(batch, mode='loss')
    assert found.keys() == expected.keys()
    for name in found:
        torch.testing.assert_close(found[name], expected[name])


@pytest.mark.parametrize('similarity', list(SIMILARITIES))
@pytest.mark.parametrize('loss', ['TripletLoss', 'InfoNCELoss'])
def test_a_step_of_gradient_descent_lowers_the_loss(matcher, regions_batch, similarity, loss):
    model = matcher(similarity, dict(type=loss))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(20):
        logs = model(regions_batch, mode='loss')
        losses.append(next(value for name, value in logs.items() if 'loss' in name))
        optimizer.zero_grad()
        losses[-1].backward()
        assert all(value.grad is not None for value in model.parameters())
        optimizer.step()
    assert losses[-1] < 0.7 * losses[0]


def test_samples_become_scores(matcher):
    model = matcher().eval()
    samples = []
    for number, text in enumerate(['a red dog', 'dog runs']):
        sample = DataSample(metainfo=dict(image_path=f'{number}', sample_index=number))
        sample.image_id, sample.text = number, text
        samples.append(sample)
    regions = Regions(torch.randn(2, 3, 7), torch.ones(2, 3, dtype=torch.bool))
    data = model.data_preprocessor(dict(inputs=regions, data_samples=samples))
    assert model(**data).shape == (2, 2)


def test_encoders_of_two_widths_are_an_error(matcher):
    with pytest.raises(ValueError, match=r'embed_dims=8 and text_encoder\.embed_dims=6'):
        matcher(text_dims=6)


def test_prediction_is_left_to_the_loop(matcher, regions_batch):
    with pytest.raises(ValueError, match="mode='predict'.*RetrievalLoop"):
        matcher()(regions_batch, mode='predict')


def test_an_encoder_for_another_vocabulary_is_an_error(matcher):
    assert matcher().text_encoder.embedding.num_embeddings == 8
    with pytest.raises(ValueError, match='vocab_size=9, but the vocabulary .* has 8 words'):
        matcher(vocab_size=9)
