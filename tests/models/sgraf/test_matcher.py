"""The matching model: wiring, losses, and what it refuses."""

import json

import pytest
import torch

from xmodal.models.losses import PairLoss
from xmodal.models.sgraf.similarity import SGRAFSimilarity
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
    word_ids = {name: word_id for word_id, name in enumerate(names)}
    (tmp_path / 'vocab.json').write_text(json.dumps({'word2idx': word_ids}))
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
    """Four images with a caption each; the first and the last image are equal."""
    lengths = torch.tensor([5, 3, 5, 4])
    mask = torch.arange(5) < lengths[:, None]
    image_ids = torch.tensor([1, 2, 3, 1])
    return ImageTextBatch(
        images=Regions(torch.randn(4, 3, 7), torch.ones(4, 3, dtype=torch.bool)),
        input_ids=torch.randint(4, 8, (4, 5)).masked_fill(~mask, 0),
        attention_mask=mask,
        image_ids=image_ids,
        text_ids=torch.arange(4),
        text_image_ids=image_ids,
    )


@pytest.mark.parametrize('similarity', list(SIMILARITIES))
@pytest.mark.parametrize('loss', ['TripletLoss', 'InfoNCELoss'])
def test_the_loss_is_that_of_the_loss_module_over_all_pairs(
    matcher, regions_batch, similarity, loss
):
    model = matcher(similarity, dict(type=loss)).eval()
    batch = regions_batch
    images = model.encode_image(batch.images)
    texts = model.encode_text(batch.input_ids, batch.attention_mask)
    logits = torch.cat(
        [
            model.similarity(images, Tokens(texts.embeddings[t : t + 1, : int(mask.sum())]))
            for t, mask in enumerate(batch.attention_mask)
        ],
        1,
    )
    torch.testing.assert_close(model(batch), logits)
    positives = torch.eye(4, dtype=torch.bool)
    positives[0, 3] = positives[3, 0] = True
    scores = logits if loss == 'InfoNCELoss' or similarity == 'pooled' else logits.sigmoid()
    expected = model.loss_module(scores, positives)
    actual = model(batch, mode='loss')
    assert actual.keys() == expected.keys()
    for name in actual:
        torch.testing.assert_close(actual[name], expected[name])


@MODELS.register_module()
class SquaredLoss(PairLoss):
    """A loss of a plug-in."""

    def forward(self, scores, positives):
        return {'loss_squared': (scores - positives.float()).square().mean()}


@pytest.mark.parametrize('similarity', list(SIMILARITIES))
def test_a_loss_of_a_plug_in_needs_a_forward_alone(matcher, regions_batch, similarity):
    model = matcher(similarity, dict(type='SquaredLoss')).eval()
    scores = model.similarity.to_scores(model(regions_batch))
    expected = (scores - regions_batch.texts_of_images.float()).square().mean()
    torch.testing.assert_close(model(regions_batch, mode='loss')['loss_squared'], expected)


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


def test_samples_pass_through_preprocessor_and_model(matcher):
    model = matcher().eval()
    samples = []
    for index, text in enumerate(['a red dog', 'dog runs']):
        sample = DataSample(metainfo=dict(image_path=f'{index}', sample_index=index))
        sample.image_id, sample.text = index, text
        samples.append(sample)
    regions = Regions(torch.randn(2, 3, 7), torch.ones(2, 3, dtype=torch.bool))
    data = model.data_preprocessor(dict(inputs=regions, data_samples=samples))
    assert model(**data).shape == (2, 2)


def test_encoders_of_two_widths_are_an_error(matcher):
    with pytest.raises(ValueError, match=r'embed_dims=8 and text_encoder\.embed_dims=6'):
        matcher(text_dims=6)


def test_predict_is_no_mode_of_the_matcher(matcher, regions_batch):
    with pytest.raises(ValueError, match="mode='predict'.*RetrievalLoop"):
        matcher()(regions_batch, mode='predict')


def test_an_encoder_for_another_vocabulary_is_an_error(matcher):
    assert matcher().text_encoder.embedding.num_embeddings == 8
    with pytest.raises(ValueError, match='vocab_size=9, but the vocabulary .* has 8 words'):
        matcher(vocab_size=9)


class Kept(PairLoss):
    """Needs the diagonal, and keeps the scores that it gets."""

    takes_logits, chooses_pairs, scores = False, True, None

    def needed_pairs(self, scores, positives):
        return torch.eye(len(scores), dtype=torch.bool)

    def forward(self, scores, positives):
        self.scores = scores
        return {'loss_kept': scores.diagonal().sum()}


@pytest.mark.parametrize('takes_logits', [False, True])
def test_pairs_that_the_loss_leaves_out_have_no_score(matcher, regions_batch, takes_logits):
    model = matcher()
    model.loss_module = Kept()
    model.loss_module.takes_logits = takes_logits
    model.loss(regions_batch)['loss_kept'].backward()
    scores = model.loss_module.scores
    assert scores.diagonal().isfinite().all()
    assert scores[~torch.eye(4, dtype=torch.bool)].isneginf().all()
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    assert gradients and all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize(
    ('loss', 'passes'),
    [
        (dict(type='TripletLoss'), 1),
        (dict(type='TripletLoss', negatives='mean'), 0),
        (dict(type='InfoNCELoss'), 0),
    ],
)
def test_a_loss_of_all_pairs_needs_no_pass_that_chooses_some(
    matcher, regions_batch, monkeypatch, loss, passes
):
    model, counted = matcher(loss=loss), []
    whole = model.similarity._score_without_graph

    def count(*arguments):
        counted.append(1)
        return whole(*arguments)

    monkeypatch.setattr(model.similarity, '_score_without_graph', count)
    model.loss(regions_batch)
    assert len(counted) == passes


def test_a_similarity_may_be_named_by_its_class(matcher, regions_batch):
    SIMILARITIES['class'] = dict(SIMILARITIES['fusion'], type=SGRAFSimilarity)
    assert matcher('class').loss(regions_batch)['loss_triplet'].isfinite()
    del SIMILARITIES['class']
