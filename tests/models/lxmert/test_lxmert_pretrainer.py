"""The five pre-training tasks of LXMERT together."""

from itertools import combinations

import pytest
import torch

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
def test_each_subset_of_tasks_trains_under_its_own_log_keys(
    build_pretrainer, region_batch, asked, names
):
    model = build_pretrainer(names)
    samples = asked('yes', None, {'red': 0.6, 'blue': 0.3}, 'no')
    logs = model(region_batch(), samples, mode='loss')
    assert set(logs) == set().union(*(LOGS[name] for name in names))
    loss = sum(value for name, value in logs.items() if 'loss' in name)
    loss.backward()
    assert loss.isfinite()
    assert set(model.heads) == set(names)
    for parameter in model.heads.parameters():
        assert parameter.grad.isfinite().all()


def test_what_a_missing_head_would_hide_stays_seen(build_pretrainer, region_batch, asked):
    model, batch = build_pretrainer(['answers']), region_batch()
    seen = {}

    def look(module, arguments):
        seen.setdefault(type(module).__name__, arguments[0])

    model.backbone.image_encoder.register_forward_pre_hook(look)
    model.backbone.text_encoder.register_forward_pre_hook(look)
    model(batch, asked(*['yes'] * 4), mode='loss')
    assert seen['ObjectEncoder'] is batch.regions
    assert seen['BertTextEncoder'] is batch.input_ids


def test_hidden_words_are_targets_where_the_text_was_replaced_too(
    build_pretrainer, region_batch, asked, monkeypatch
):
    model, batch = build_pretrainer(['mlm', 'matching']), region_batch(lengths=[7] * 4)
    order = torch.tensor([1, 0, 2, 3])
    matched = torch.tensor([False, False, True, True])
    monkeypatch.setattr(model.heads['matching'], 'draw', lambda _: (order, matched))
    targets = {}

    def remember(logits, found, *_):
        targets['found'] = found
        return {'loss_mlm': logits.sum() * 0}

    monkeypatch.setattr(model.heads['mlm'], 'loss', remember)
    model.heads['mlm'].mask_probability = 1.0
    model(batch, asked(*[None] * 4), mode='loss')
    assert targets['found'].equal(batch.input_ids[order][:, 1:-1].flatten())


def test_only_the_texts_of_other_images_are_mismatches(
    build_pretrainer, region_batch, asked, monkeypatch
):
    model = build_pretrainer(['matching'])
    batch = region_batch(image_ids=[3, 3, 5, 6])
    batch = batch._replace(text_ids=torch.tensor([100, 101, 102, 100]))
    found = []
    draw = model.heads['matching'].draw
    monkeypatch.setattr(
        model.heads['matching'], 'draw', lambda same: (found.append(same), draw(same))[1]
    )
    model(batch, asked(*[None] * 4), mode='loss')
    # The first two are of one image, the first and the last have the same words.
    expected = [[1, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]]
    assert found[0].int().tolist() == expected


def test_a_question_to_another_image_asks_for_no_answer(
    build_pretrainer, region_batch, asked, monkeypatch
):
    model = build_pretrainer(['matching', 'answers'])
    labels = []
    monkeypatch.setattr(
        model.heads['matching'],
        'draw',
        lambda _: (torch.tensor([1, 0, 2, 3]), torch.tensor([False, False, True, True])),
    )
    loss = model.heads['answers'].label_loss
    monkeypatch.setattr(
        model.heads['answers'], 'label_loss', lambda x, y: (labels.append(y), loss(x, y))[1]
    )
    model(region_batch(), asked('yes', 'no', 'red', None), mode='loss')
    assert labels[0].tolist() == [-1, -1, 2, -1]


def test_without_a_hidden_word_region_or_an_answer_losses_are_zero_and_teach_nothing(
    build_pretrainer, region_batch, asked
):
    model = build_pretrainer(TASKS)
    model.heads['mlm'].mask_probability = 0.0
    model.heads['objects'].mask_probability = 1e-12
    logs = model(region_batch(), asked(*[None] * 4), mode='loss')
    logs.pop('loss_matching')
    losses = {name: value for name, value in logs.items() if 'loss' in name}
    assert len(losses) == 5 and all(value == 0 for value in losses.values())
    sum(losses.values()).backward()
    for parameter in model.parameters():
        assert parameter.grad is None or (parameter.grad == 0).all()


def test_heads_that_wait_cost_nothing(build_pretrainer, region_batch, asked):
    model = build_pretrainer(TASKS)
    model.active_heads = frozenset(['mlm', 'matching'])
    logs = model(region_batch(), asked(*['yes'] * 4), mode='loss')
    assert set(logs) == LOGS['mlm'] | LOGS['matching']


def test_with_ace_rpe_the_log_tells_anchors_of_matched_and_mismatched_pairs(
    build_pretrainer, region_batch, asked
):
    model = build_pretrainer(TASKS, position='ace_rpe')
    batch = region_batch()
    batch.regions.attention_mask[0, 3:] = False
    logs = model(batch, asked(*['yes'] * 4), mode='loss')
    names = {f'{x}_share_{y}' for x in ('anchor', 'masked') for y in ('matched', 'mismatched')}
    assert names < set(logs)
    assert all(0 <= logs[name] <= 1 for name in names)


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
    regions, embedded = objects.embedding(*batch.regions[::2]), words.embeddings(input_ids=ids)
    if position == 'pre_encoder':
        regions, embedded = regions + image, embedded + text
    for layer in objects.layers:
        regions = layer(regions, batch.regions.attention_mask)
    bias = torch.zeros(mask.shape).masked_fill(~mask, -1e9)[:, None, None]
    encoded = words.encoder(embedded, attention_mask=bias).last_hidden_state
    if position == 'post_encoder':
        regions, encoded = regions + image, encoded + text
    torch.testing.assert_close(backbone.encode_image(batch.regions).embeddings, regions)
    torch.testing.assert_close(backbone.encode_text(ids, mask).embeddings[mask], encoded[mask])


@pytest.mark.parametrize('name', ['ape', 'rpe', 'ape+rpe'])
def test_positions_of_a_grid_are_refused_when_the_model_is_built(
    build_pretrainer, backbone, preprocessor, heads, name
):
    config = backbone()
    config['position'] = dict(type=name)
    with pytest.raises(ValueError, match='rows and columns of patches'):
        MODELS.build(
            dict(
                type='LxmertPretrainer',
                data_preprocessor=preprocessor,
                backbone=config,
                heads=heads(),
            )
        )


class RegionCount(torch.nn.Module):
    """A head of one's own: how many regions there are, from what each is fused to."""

    def __init__(self, embed_dims):
        super().__init__()
        self.output = torch.nn.Linear(embed_dims, 1)

    def step_loss(self, model, fused, shown, batch, samples):
        assert model.mask_id in shown.batch.input_ids
        assert model.mask_id not in batch.input_ids
        regions = batch.regions.attention_mask
        counts = (self.output(fused.image_tokens)[..., 0] * regions).sum(1)
        return {'loss': (counts - regions.sum(1)).square().mean(), 'samples': len(samples)}


def test_a_head_of_ones_own_is_trained_beside_the_others(
    backbone, preprocessor, heads, region_batch, asked
):
    own = dict(mlm=heads(['mlm'])['mlm'], counts=dict(type=RegionCount))
    config = dict(type='LxmertPretrainer', data_preprocessor=preprocessor, heads=own)
    model, data = MODELS.build({**config, 'backbone': backbone()}), region_batch()
    samples = asked('yes', None, None, 'no')
    logs = model(data, samples, mode='loss')
    assert logs['samples_counts'] == 4
    (logs['loss_counts'] + logs['loss_mlm']).backward()
    assert model.heads['counts'].output.weight.grad.any()
    model.active_heads = frozenset(['mlm'])
    assert 'loss_counts' not in model(data, samples, mode='loss')


def test_encoders_of_different_width_and_unknown_heads_are_refused(backbone, preprocessor, heads):
    config = backbone()
    config['image_encoder']['embed_dims'] = 16
    model = dict(type='LxmertPretrainer', data_preprocessor=preprocessor)
    with pytest.raises(ValueError, match='image_encoder 16, text_encoder 32, fusion 32'):
        MODELS.build({**model, 'backbone': config, 'heads': heads()})
    with pytest.raises(ValueError, match=r'heads\.pixels: MIMHead has no step_loss'):
        MODELS.build({**model, 'backbone': backbone(), 'heads': dict(pixels=dict(type='MIMHead'))})


def test_a_checkpoint_of_another_model_is_refused(build_pretrainer):
    with pytest.raises(ValueError, match='tools/model_converters/lxmert.py'):
        build_pretrainer(['mlm']).load_state_dict({'bert.pooler.dense.bias': torch.zeros(1)})


def test_half_precision_gives_finite_losses_and_gradients(build_pretrainer, region_batch, asked):
    model = build_pretrainer(TASKS, position='ace_rpe', label_scope='all')
    with torch.autocast('cpu', torch.bfloat16):
        logs = model(region_batch(), asked(*['yes'] * 4), mode='loss')
    sum(value for name, value in logs.items() if 'loss' in name).backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize('position', ['none', 'ace_rpe'])
def test_it_overfits_a_few_pairs_in_every_task(build_pretrainer, region_batch, asked, position):
    model = build_pretrainer(TASKS, position=position, depth=1)
    batch, samples = region_batch(regions=3), asked('yes', 'no', None, 'blue')
    batch.regions.features[:] = batch.regions.features[:, :1]  # as like as the parts of one thing
    model.heads['objects'].mask_probability = 0.3
    model.heads['mlm'].mask_probability = 0.3
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    history = []
    for _ in range(300):
        logs = model(batch, samples, mode='loss')
        optimizer.zero_grad()
        sum(value for name, value in logs.items() if 'loss' in name).backward()
        optimizer.step()
        history.append({name: value.item() for name, value in logs.items() if 'loss' in name})
    for name in history[0]:
        first, last = (sum(step[name] for step in part) for part in (history[:20], history[-20:]))
        assert last < 0.85 * first, (name, first / 20, last / 20)
