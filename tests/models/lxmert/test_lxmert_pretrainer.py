"""The five pre-training tasks of LXMERT together."""

from importlib.util import find_spec
from itertools import combinations

import pytest
import torch

from xmodal.errors import ConfigError
from xmodal.models.heads import PretrainHead
from xmodal.registry import MODELS

TASKS = ('mlm', 'objects', 'matching', 'answers')
SUBSETS = [subset for size in (1, 2, 3, 4) for subset in combinations(TASKS, size)]
LOGS = {
    'mlm': {'loss_mlm'},
    'objects': {'loss_features', 'loss_objects', 'loss_attributes'},
    'matching': {'loss_matching', 'matching_accuracy'},
    'answers': {'loss_answers', 'answer_accuracy'},
}


@pytest.mark.parametrize('names', SUBSETS, ids='+'.join)
def test_each_subset_of_tasks_trains_under_its_log_keys(
    build_pretrainer, region_batch, questions, names
):
    model = build_pretrainer(names)
    samples = questions('yes', None, {'red': 0.6, 'blue': 0.3}, 'no')
    logs = model(region_batch(), samples, mode='loss')
    assert set(logs) == set().union(*(LOGS[name] for name in names))
    loss = sum(value for name, value in logs.items() if 'loss' in name)
    loss.backward()
    assert loss.isfinite()
    assert set(model.heads) == set(names)
    for parameter in model.heads.parameters():
        assert parameter.grad.isfinite().all()


def test_nothing_is_masked_for_a_head_that_is_left_out(
    build_pretrainer, region_batch, questions, monkeypatch
):
    model, batch, inputs = build_pretrainer(['answers']), region_batch(), {}
    for encoder in (model.backbone.image_encoder, model.backbone.text_encoder):
        embed = encoder.embed
        monkeypatch.setattr(
            encoder,
            'embed',
            lambda *x, encoder=encoder, embed=embed: (
                inputs.setdefault(type(encoder).__name__, x[0]),
                embed(*x),
            )[1],
        )
    model(batch, questions(*['yes'] * 4), mode='loss')
    assert inputs['ObjectEncoder'] is batch.images
    assert inputs['BertTextEncoder'] is batch.input_ids


def test_masked_words_are_targets_in_replaced_texts_too(
    build_pretrainer, region_batch, questions, monkeypatch
):
    model, batch = build_pretrainer(['mlm', 'matching']), region_batch(lengths=[7] * 4)
    rows = torch.tensor([1, 0, 2, 3])
    matched = torch.tensor([False, False, True, True])
    monkeypatch.setattr(model.heads['matching'], 'sample_texts', lambda _: (rows, matched))
    targets = []
    word_loss = model.heads['mlm'].word_loss
    monkeypatch.setattr(
        model.heads['mlm'], 'word_loss', lambda x, y: (targets.append(y), word_loss(x, y))[1]
    )
    model.heads['mlm'].mask_probability = 1.0
    model(batch, questions(*[None] * 4), mode='loss')
    assert targets[0].equal(batch.input_ids[rows][:, 1:-1].flatten())


def test_only_the_texts_of_other_images_are_mismatches(
    build_pretrainer, region_batch, questions, monkeypatch
):
    model = build_pretrainer(['matching'])
    batch = region_batch(image_ids=[3, 3, 5, 6])
    batch = batch._replace(text_ids=torch.tensor([100, 101, 102, 100]))
    positives = []
    sample_texts = model.heads['matching'].sample_texts
    monkeypatch.setattr(
        model.heads['matching'],
        'sample_texts',
        lambda mask: (positives.append(mask), sample_texts(mask))[1],
    )
    model(batch, questions(*[None] * 4), mode='loss')
    # The first two are of one image, and the first and the last text are equal.
    expected = [[1, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]]
    assert positives[0].int().tolist() == expected


def test_a_question_to_another_image_has_no_label(
    build_pretrainer, region_batch, questions, monkeypatch
):
    model = build_pretrainer(['matching', 'answers'])
    labels = []
    monkeypatch.setattr(
        model.heads['matching'],
        'sample_texts',
        lambda _: (torch.tensor([1, 0, 2, 3]), torch.tensor([False, False, True, True])),
    )
    loss = model.heads['answers'].label_loss
    monkeypatch.setattr(
        model.heads['answers'], 'label_loss', lambda x, y: (labels.append(y), loss(x, y))[1]
    )
    model(region_batch(), questions('yes', 'no', 'red', None), mode='loss')
    assert labels[0].tolist() == [-1, -1, 2, -1]


def test_without_masked_words_regions_and_answers_losses_and_gradients_are_zero(
    build_pretrainer, region_batch, questions
):
    model = build_pretrainer(TASKS)
    model.heads['mlm'].mask_probability = 0.0
    model.heads['objects'].mask_probability = 1e-12
    logs = model(region_batch(), questions(*[None] * 4), mode='loss')
    logs.pop('loss_matching')
    losses = {name: value for name, value in logs.items() if 'loss' in name}
    assert len(losses) == 5 and all(value == 0 for value in losses.values())
    sum(losses.values()).backward()
    for parameter in model.parameters():
        assert parameter.grad is None or (parameter.grad == 0).all()


def test_inactive_heads_are_not_computed(build_pretrainer, region_batch, questions):
    model = build_pretrainer(TASKS)
    model.heads.active = frozenset(['mlm', 'matching'])
    logs = model(region_batch(), questions(*['yes'] * 4), mode='loss')
    assert set(logs) == LOGS['mlm'] | LOGS['matching']


def test_with_ace_rpe_anchor_shares_of_matched_and_mismatched_pairs_are_logged(
    build_pretrainer, region_batch, questions
):
    model = build_pretrainer(TASKS, position='AnchorRelativePosition')
    batch = region_batch()
    batch.images.attention_mask[0, 3:] = False
    logs = model(batch, questions(*['yes'] * 4), mode='loss')
    names = {f'{x}_share_{y}' for x in ('anchor', 'masked') for y in ('matched', 'mismatched')}
    assert names < set(logs)
    assert all(0 <= logs[name] <= 1 for name in names)


@pytest.mark.skipif(not find_spec('peft'), reason="LoRA needs the extra: pip install -e '.[lora]'")
def test_heads_may_have_lora_whose_product_is_zero_at_the_start(backbone, preprocessor, heads):
    configs = heads(['matching'])
    for config in configs.values():
        config['lora'] = dict(r=2, target_modules='all-linear')
    model = dict(type='LxmertPretrainer', data_preprocessor=preprocessor, heads=configs)
    weights = MODELS.build(dict(model, backbone=backbone())).heads.state_dict()
    products = [value for name, value in weights.items() if 'lora_B' in name]
    assert products and not any(value.any() for value in products)


@pytest.mark.parametrize('position', ['pre_encoder', 'post_encoder'])
def test_token_types_are_added_before_or_after_both_encoders(
    backbone, preprocessor, heads, region_batch, position
):
    types = dict(type='TokenTypeEmbedding', position=position, layer_scale=0.5)
    model = MODELS.build(
        dict(
            type='LxmertPretrainer',
            data_preprocessor=preprocessor,
            heads=heads(['matching']),
            backbone=dict(backbone(), token_type=types),
        )
    ).eval()
    batch, backbone = region_batch(), model.backbone
    text, image = 0.5 * backbone.token_type.type_embeddings
    objects, words = backbone.image_encoder, backbone.text_encoder.bert
    ids, mask = batch.input_ids, batch.attention_mask
    regions, embedded = objects.embedding(*batch.images[::2]), words.embeddings(input_ids=ids)
    if position == 'pre_encoder':
        regions, embedded = regions + image, embedded + text
    for layer in objects.layers:
        regions = layer(regions, batch.images.attention_mask)
    bias = torch.zeros(mask.shape).masked_fill(~mask, -1e9)[:, None, None]
    encoded = words.encoder(embedded, attention_mask=bias).last_hidden_state
    if position == 'post_encoder':
        regions, encoded = regions + image, encoded + text
    torch.testing.assert_close(backbone.encode_image(batch.images).embeddings, regions)
    torch.testing.assert_close(backbone.encode_text(ids, mask).embeddings[mask], encoded[mask])


@pytest.mark.parametrize(
    'name', ['AbsolutePosition', 'RelativePosition', 'AbsoluteRelativePosition']
)
def test_positions_of_a_grid_learn_where_regions_are(
    region_batch, backbone, preprocessor, heads, name
):
    config = dict(
        type='LxmertPretrainer',
        data_preprocessor=preprocessor,
        backbone=dict(backbone(), position=dict(type=name)),
        heads=heads(['objects']),
    )
    model = MODELS.build(config)
    losses = model.loss(region_batch(), [])
    sum(value for key, value in losses.items() if 'loss' in key).backward()
    of_images = {
        key: parameter
        for key, parameter in model.backbone.position.named_parameters()
        if 'image' in key
    }
    assert of_images and all(parameter.grad.any() for parameter in of_images.values())


@MODELS.register_module()
class RegionCountHead(PretrainHead):
    """An objective from outside the package: the number of regions, from the fused regions."""

    def __init__(self, embed_dims):
        super().__init__()
        self.output = torch.nn.Linear(embed_dims, 1)

    def loss(self, model, step):
        mask_id = model.data_preprocessor.mask_id
        assert mask_id in step.shown.batch.input_ids and mask_id not in step.batch.input_ids
        regions = step.batch.images.attention_mask
        counts = (self.output(step.fused.image_tokens)[..., 0] * regions).sum(1)
        error = counts - regions.sum(1)
        return {
            'loss_count': error.square().mean(),
            'num_samples': torch.tensor(float(len(step.samples))),
        }


@pytest.fixture
def build_with_count(backbone, preprocessor, heads):
    """Builds a tiny pre-trainer with some heads and the one of this file."""

    def make(names=('mlm',)):
        configs = heads(names)
        configs['count'] = dict(type='RegionCountHead')  # the one line
        config = dict(type='LxmertPretrainer', data_preprocessor=preprocessor, heads=configs)
        return MODELS.build({**config, 'backbone': backbone()})

    return make


def test_a_head_from_outside_the_package_is_trained_beside_the_others(
    build_with_count, region_batch, questions
):
    model, batch = build_with_count(), region_batch()
    samples = questions('yes', None, None, 'no')
    values = model(batch, samples, mode='loss')
    assert values['num_samples'] == 4
    values['loss_count'].backward()
    assert model.heads['count'].output.weight.grad.any()
    for part in (model.backbone.image_encoder, model.backbone.text_encoder, model.backbone.fusion):
        assert any(p.grad is not None and p.grad.any() for p in part.parameters())
    model.heads.active = frozenset(['mlm'])
    assert 'loss_count' not in model(batch, samples, mode='loss')


def test_all_heads_share_one_pass_through_the_model(build_with_count, region_batch, questions):
    model = build_with_count(TASKS)
    calls = []
    backbone = model.backbone
    for part in (backbone.image_encoder, backbone.text_encoder, backbone.fusion, backbone.pooler):
        embed = getattr(part, 'embed', None)
        if embed is None:
            part.register_forward_pre_hook(lambda module, _: calls.append(type(module).__name__))
        else:
            part.embed = lambda *x, part=part, embed=embed: (
                calls.append(type(part).__name__),
                embed(*x),
            )[1]
    values = model(region_batch(), questions(*['yes'] * 4), mode='loss')
    assert set(values) > set().union(*LOGS.values())
    assert calls == ['ObjectEncoder', 'BertTextEncoder', 'CrossModalityEncoder', 'Linear']


@pytest.mark.parametrize(('names', 'expected'), [(('mlm', 'matching'), False), (TASKS, True)])
def test_fused_regions_are_computed_only_where_a_head_reads_them(
    build_pretrainer, region_batch, questions, monkeypatch, names, expected
):
    model, need_image = build_pretrainer(names), []
    fuse = model.backbone.fuse
    monkeypatch.setattr(
        model.backbone, 'fuse', lambda *x, **need: (need_image.append(need), fuse(*x, **need))[1]
    )
    model(region_batch(), questions(*['yes'] * 4), mode='loss')
    assert need_image == [{'need_image': expected}]


def test_encoders_of_different_width_are_refused(backbone, preprocessor, heads):
    config = backbone()
    config['image_encoder']['embed_dims'] = 16
    model = dict(type='LxmertPretrainer', data_preprocessor=preprocessor)
    with pytest.raises(ValueError, match='image_encoder 16, text_encoder 32, fusion 32'):
        MODELS.build({**model, 'backbone': config, 'heads': heads()})


@pytest.mark.parametrize(
    'encoder',
    [
        dict(type='GridFeatureEncoder', feature_dims=12, embed_dims=32),
        dict(type='ViTImageEncoder', patch_size=8, embed_dim=32, num_heads=2, depth=1),
    ],
    ids=lambda encoder: encoder['type'],
)
def test_an_image_encoder_with_cls_is_refused(backbone, preprocessor, heads, encoder):
    model = dict(type='LxmertPretrainer', data_preprocessor=preprocessor)
    config = backbone() | dict(image_encoder=encoder)
    with pytest.raises(ConfigError, match=f"no .CLS.*found.*='{encoder['type']}': take ObjectEnc"):
        MODELS.build({**model, 'backbone': config, 'heads': heads(['matching'])})


def test_a_head_that_is_no_objective_is_refused(backbone, preprocessor):
    model = dict(type='LxmertPretrainer', data_preprocessor=preprocessor, backbone=backbone())
    head = dict(type='ClassificationHead', num_classes=2)
    message = r'model\.heads\.classes: ClassificationHead is no PretrainHead'
    with pytest.raises(ValueError, match=message):
        MODELS.build({**model, 'heads': dict(classes=head)})


def test_a_checkpoint_of_another_model_is_refused(build_pretrainer):
    with pytest.raises(ValueError, match='xmodal convert-lxmert'):
        build_pretrainer(['mlm']).load_state_dict({'bert.pooler.dense.bias': torch.zeros(1)})


def test_half_precision_gives_finite_losses_and_gradients(
    build_pretrainer, region_batch, questions
):
    model = build_pretrainer(TASKS, position='AnchorRelativePosition', label_scope='all')
    with torch.autocast('cpu', torch.bfloat16):
        logs = model(region_batch(), questions(*['yes'] * 4), mode='loss')
    sum(value for name, value in logs.items() if 'loss' in name).backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize('position', ['NoPosition', 'AnchorRelativePosition'])
def test_it_overfits_a_few_pairs_in_every_task(build_pretrainer, region_batch, questions, position):
    model = build_pretrainer(TASKS, position=position, depth=1)
    batch, samples = region_batch(regions=3), questions('yes', 'no', None, 'blue')
    batch.images.features[:] = batch.images.features[:, :1]  # as similar as parts of one object
    model.heads['objects'].mask_probability = 0.3
    model.heads['mlm'].mask_probability = 0.3
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, fused=True)
    history = []
    for step in range(300):
        logs = model(batch, samples, mode='loss')
        losses = {name: value for name, value in logs.items() if 'loss' in name}
        optimizer.zero_grad()
        sum(losses.values()).backward()
        optimizer.step()
        history.append({name: value.item() for name, value in losses.items()})
        if step % 20 == 19 and all(share < 0.8 for share in ends_over_starts(history).values()):
            break
    shares = ends_over_starts(history)
    assert all(share < 0.85 for share in shares.values()), shares


def ends_over_starts(history, steps=20):
    """The sum of each loss in the last steps over that in the first."""
    first, last = history[:steps], history[-steps:]
    return {name: sum(x[name] for x in last) / sum(x[name] for x in first) for name in first[0]}
