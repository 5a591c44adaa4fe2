"""Masked object prediction."""

import pytest
import timm
import torch

from xmodal.models.heads import ObjectHead
from xmodal.structures import ObjectLabels, Regions

WIDTH, FEATURES, OBJECTS, ATTRIBUTES = 8, 6, 5, 3


def make_head(**switches):
    head = ObjectHead(WIDTH, FEATURES, OBJECTS, ATTRIBUTES, **switches)
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return head


def random_regions(images=3, regions=7, counts=None):
    shape = images, regions
    counts = torch.tensor(counts or [regions] * images)
    return Regions(
        torch.randn(*shape, FEATURES),
        torch.arange(regions) < counts[:, None],
        torch.rand(*shape, 4),
        ObjectLabels(
            torch.randint(OBJECTS, shape),
            torch.rand(shape),
            torch.randint(ATTRIBUTES, shape),
            torch.rand(shape),
        ),
    )


def literal_losses(head, tokens, regions, targets, feature_loss, label_scope, confidence_weight):
    """Region by region, as Sec. 3.1 and the released code have it."""
    losses = dict.fromkeys(('loss_features', 'loss_objects', 'loss_attributes'), 0.0)
    labels = regions.labels
    for b, r in regions.attention_mask.nonzero().tolist():
        masked = head.norm(torch.nn.functional.gelu(head.transform(tokens[b, r])))
        if targets[b, r]:
            error = head.decoders['features'](masked) - regions.features[b, r]
            huber = torch.where(error.abs() < 1, error**2 / 2, error.abs() - 0.5)
            losses['loss_features'] += (error**2 if feature_loss == 'l2' else huber).mean()
        if label_scope == 'masked' and not targets[b, r]:
            continue
        for name, classes, confidences in (
            ('objects', labels.objects, labels.object_confidences),
            ('attributes', labels.attributes, labels.attribute_confidences),
        ):
            error = -head.decoders[name](masked).log_softmax(0)[classes[b, r]]
            losses[f'loss_{name}'] += error * (confidences[b, r] if confidence_weight else 1)
    expected = regions.attention_mask.sum() * head.mask_probability
    return {name: loss / expected for name, loss in losses.items()}


@pytest.mark.parametrize('feature_loss', ['l2', 'smooth_l1'])
@pytest.mark.parametrize('label_scope', ['masked', 'all'])
@pytest.mark.parametrize('confidence_weight', [False, True])
def test_losses_are_sums_over_the_regions_one_by_one(feature_loss, label_scope, confidence_weight):
    switches = dict(
        feature_loss=feature_loss, label_scope=label_scope, confidence_weight=confidence_weight
    )
    head, regions = make_head(**switches), random_regions(counts=[7, 4, 6])
    tokens, targets = torch.randn(3, 7, WIDTH), torch.rand(3, 7) < 0.4
    targets &= regions.attention_mask
    actual = head.region_loss(tokens, regions, targets)
    torch.testing.assert_close(actual, literal_losses(head, tokens, regions, targets, **switches))


@pytest.fixture
def many_regions():
    """100,000 regions that differ from each other."""
    return Regions(
        torch.arange(1, 100_001).float().view(100, 1000, 1),
        torch.ones(100, 1000).bool(),
        torch.rand(100, 1000, 4),
    )


def test_in_the_paper_15_percent_of_the_regions_are_hidden_by_zeros(many_regions):
    masked, targets = ObjectHead(WIDTH, 1).mask_regions(many_regions)
    assert targets.float().mean().item() == pytest.approx(0.15, abs=0.005)
    assert masked.features.equal(many_regions.features.masked_fill(targets[..., None], 0))
    assert masked.boxes is many_regions.boxes


def test_in_the_released_code_15_percent_of_the_regions_are_targets_80_10_10(many_regions):
    regions = many_regions
    masked, targets = ObjectHead(WIDTH, 1, masking='bert').mask_regions(regions)
    assert targets.float().mean().item() == pytest.approx(0.15, abs=0.005)
    before, after = regions.features[targets], masked.features[targets]
    assert (after == 0).float().mean().item() == pytest.approx(0.8, abs=0.01)
    assert (after == before).float().mean().item() == pytest.approx(0.1, abs=0.01)
    others = after[(after != 0) & (after != before)]
    assert others.unique().numel() > 1000  # regions of the whole batch
    assert masked.features[~targets].equal(regions.features[~targets])
    assert masked.boxes is regions.boxes


@pytest.mark.parametrize('masking', ['zeros', 'bert'])
def test_padding_is_neither_a_target_nor_a_replacement(masking):
    regions = random_regions(images=50, regions=20, counts=[10] * 50)
    regions.features[:, 10:] = 99
    masked, targets = make_head(mask_probability=1.0, masking=masking).mask_regions(regions)
    assert targets.equal(regions.attention_mask)
    assert (masked.features[:, :10] != 99).all()


@pytest.mark.parametrize('masking', ['zeros', 'bert'])
def test_masking_leaves_the_regions_of_the_batch_unchanged(masking):
    regions = random_regions()
    before = regions.features.clone()
    make_head(mask_probability=1.0, masking=masking).mask_regions(regions)
    assert regions.features.equal(before)


@pytest.mark.parametrize('scope', ['all', 'masked'])
def test_without_a_target_only_classes_of_all_regions_are_learned(scope):
    head, regions = make_head(label_scope=scope), random_regions()
    losses = head.region_loss(
        torch.randn(3, 7, WIDTH), regions, torch.zeros(3, 7, dtype=torch.bool)
    )
    sum(losses.values()).backward()
    assert losses['loss_features'] == 0
    assert all((p.grad == 0).all() for p in head.decoders['features'].parameters())
    for name in ('objects', 'attributes'):
        assert bool(losses[f'loss_{name}'] > 0) == (scope == 'all')
        assert head.decoders[name].weight.grad.any() == (scope == 'all')


@pytest.mark.parametrize(
    'tasks',
    [['features'], ['objects'], ['attributes'], ['objects', 'attributes'], ['features', 'objects']],
)
def test_each_subset_of_tasks_has_its_weights_and_log_keys(tasks):
    head = make_head(tasks=tasks)
    losses = head.region_loss(torch.randn(3, 7, WIDTH), random_regions(), torch.ones(3, 7).bool())
    assert set(losses) == {f'loss_{task}' for task in tasks}
    assert set(head.decoders) == set(tasks)


def test_only_classes_need_labels():
    regions, targets = random_regions()._replace(labels=None), torch.ones(3, 7).bool()
    make_head(tasks=['features']).region_loss(torch.randn(3, 7, WIDTH), regions, targets)
    with pytest.raises(ValueError, match="'objects', but the regions have no labels"):
        make_head().region_loss(torch.randn(3, 7, WIDTH), regions, targets)


@pytest.mark.parametrize('name', ['objects', 'attributes'])
def test_a_class_that_the_head_does_not_have_is_an_error_with_its_key(name):
    regions, targets = random_regions(), torch.zeros(3, 7, dtype=torch.bool)
    targets[1, 2] = True
    count = len(getattr(make_head().decoders, name).weight)
    getattr(regions.labels, name)[0] = count  # of regions that are not learned
    make_head().region_loss(torch.randn(3, 7, WIDTH), regions, targets)
    getattr(regions.labels, name)[1] = count
    message = f'num_{name}={count}, but a region has the class {count}, .* at least {count + 1}'
    with pytest.raises(ValueError, match=message):
        make_head().region_loss(torch.randn(3, 7, WIDTH), regions, targets)


@pytest.mark.parametrize(
    'switch',
    [
        dict(tasks=['boxes']),
        dict(tasks=[]),
        dict(masking='mean'),
        dict(feature_loss='l1'),
        dict(label_scope='some'),
    ],
)
def test_unknown_switches_are_refused(switch):
    with pytest.raises(ValueError, match=f'heads.objects.{next(iter(switch))}='):
        make_head(**switch)


@pytest.fixture
def extractor(tmp_path):
    """The config of an extractor with random weights, and these weights."""
    weights = timm.create_model('test_efficientnet').state_dict()
    torch.save(weights, tmp_path / 'weights.pth')
    config = dict(
        type='GridExtractor', arch='test_efficientnet', image_size=64,
        pretrained=str(tmp_path / 'weights.pth'),
    )  # fmt: skip
    return config, weights['classifier.weight']


@pytest.mark.parametrize('label_scope', ['all', 'masked'])
def test_cells_without_labels_get_those_of_the_classifier(extractor, label_scope):
    config, vectors = extractor
    switches = dict(label_scope=label_scope, confidence_weight=True, tasks=['features', 'objects'])
    head = ObjectHead(WIDTH, vectors.shape[1], len(vectors), classifier=config, **switches)
    head.init_weights()
    features = torch.randn(3, 7, vectors.shape[1])
    regions = Regions(features, torch.ones(3, 7).bool(), torch.rand(3, 7, 4))
    confidences, objects = (features @ vectors.T).softmax(-1).max(-1)
    none = torch.zeros(3, 7, dtype=torch.int64)
    labelled = regions._replace(labels=ObjectLabels(objects, confidences, none, none.float()))
    expecting = ObjectHead(WIDTH, vectors.shape[1], len(vectors), **switches)
    expecting.load_state_dict(head.state_dict(), strict=False)
    tokens, targets = torch.randn(3, 7, WIDTH), torch.rand(3, 7) < 0.4
    actual = head.region_loss(tokens, regions, targets)
    torch.testing.assert_close(actual, expecting.region_loss(tokens, labelled, targets))
    assert actual['loss_objects'] > 0


def test_a_classifier_of_other_classes_is_an_error(extractor):
    config, vectors = extractor
    head = ObjectHead(WIDTH, vectors.shape[1], 7, classifier=config)
    with pytest.raises(ValueError, match=r'1000 classes of \d+ features, expected 7'):
        head.init_weights()
