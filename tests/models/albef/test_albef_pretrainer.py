"""The assembled pre-trainer."""

import pytest
import torch
from torch import distributed
from torch.multiprocessing import start_processes

from xmodal.registry import MODELS, register_all
from xmodal.structures import ImageTextBatch


def total_loss(logs):
    return sum(value for name, value in logs.items() if 'loss' in name)


def test_every_position_pretrains_with_finite_losses_and_gradients(build, batch, position_name):
    model = build(position_name, dropout=0.1).train()
    model.distillation_weight = 0.4
    logs = model(batch(), mode='loss')
    assert {name for name in logs if 'loss' in name} == {
        'loss_itc',
        'loss_ace',
        'loss_itm',
        'loss_mlm',
        'loss_mim',
    }
    assert all(value.isfinite() and value.ndim == 0 for value in logs.values())
    total_loss(logs).backward()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, name
            assert parameter.grad.isfinite().all(), name


@pytest.mark.parametrize('streams', ['both', 'text'])
def test_under_bfloat16_autocast_losses_and_gradients_are_finite(build, batch, streams):
    heads = ['itc', 'ace', 'itm', 'mlm', 'mim'] if streams == 'both' else ['itc', 'itm', 'mlm']
    model = build(heads=heads, streams=streams).train()
    for parameter in model.backbone.position.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    model.distillation_weight = 0.4
    with torch.autocast('cpu', torch.bfloat16):
        logs = model(batch(), mode='loss')
    total_loss(logs).backward()
    assert all(value.isfinite() for value in logs.values())
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert all(gradient.isfinite().all() for gradient in gradients)


@torch.no_grad()
def test_without_a_teacher_no_target_is_soft(build, batch):
    model, data = build(heads=['itc'], momentum=None).eval(), batch()
    losses = []
    for weight in (0.0, 0.4):  # what the hook sets, which does not look for a teacher
        model.distillation_weight = weight
        step, _ = model.prepare_step(data)
        losses.append(model.heads.loss(model, step)['loss_itc'])
    assert losses[0].equal(losses[1])


@pytest.mark.parametrize(
    'heads', [['itc'], ['ace'], ['mlm'], ['mim'], ['itc', 'itm'], ['ace', 'itm', 'mlm', 'mim']]
)
def test_a_head_that_is_left_out_is_not_computed(build, batch, heads):
    logs = build(heads=heads)(batch(), mode='loss')
    assert {name for name in logs if 'loss' in name} == {f'loss_{name}' for name in heads}


def test_anchor_statistics_are_logged_for_matched_and_mismatched_pairs(build, batch):
    logs = build()(batch(), mode='loss')
    for name in ('anchor_share', 'masked_share'):
        for kind in ('matched', 'mismatched'):
            assert 0 <= logs[f'{name}_{kind}'] <= 1


@pytest.mark.parametrize(
    'case',
    [
        dict(size=1),
        dict(image_ids=[5, 5, 5, 5]),
        dict(text_ids=[5, 5, 5, 5]),
        dict(lengths=[2, 2, 2, 2]),  # [CLS] and [SEP], no word to mask
    ],
)
def test_an_unusual_batch_has_finite_losses_and_gradients(build, batch, case):
    model = build()
    for _ in range(2):
        logs = model(batch(**case), mode='loss')
        assert all(value.isfinite() for value in logs.values())
    total_loss(logs).backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


def test_padding_content_changes_no_loss(build, batch):
    model = build(heads=['itc', 'ace', 'itm', 'mim']).eval()
    data = batch()
    noise = torch.randint_like(data.input_ids, 5, 40)
    noisy = data._replace(input_ids=torch.where(data.attention_mask, data.input_ids, noise))
    state = {name: value.clone() for name, value in model.state_dict().items()}
    logs = []
    for each in (data, noisy):
        model.load_state_dict(state)
        torch.manual_seed(1)
        logs.append(model(each, mode='loss'))
    for name, value in logs[0].items():
        torch.testing.assert_close(logs[1][name], value, atol=1e-5, rtol=1e-5)


def test_keys_of_the_batch_are_written_to_the_queue(build, batch):
    model, data = build(), batch()
    teacher = model.teacher.module['backbone']
    expected = teacher.encode_image(data.images).embedding
    model(data, mode='loss')
    assert model.queue.image_ids.tolist() == [0, 1, 2, 3] + [-1] * 6
    assert model.queue.text_ids[:4].tolist() == data.text_ids.tolist()
    torch.testing.assert_close(model.queue.image_embeddings[:4], expected)


def test_the_teacher_follows_the_online_modules_and_gets_no_gradient(build, batch):
    model = build(momentum=0.9)
    with torch.no_grad():
        model.backbone.image_proj.weight.add_(1.0)
        model.heads['mlm'].transform.weight.add_(1.0)
    before = model.teacher.module['backbone'].image_proj.weight.clone()
    model.update_momentum()
    after = model.teacher.module['backbone'].image_proj.weight
    torch.testing.assert_close(after, before + 0.1)
    torch.testing.assert_close(
        model.teacher.module['mlm'].transform.weight, model.heads['mlm'].transform.weight - 0.9
    )
    total_loss(model(batch(), mode='loss')).backward()
    assert all(p.grad is None for p in model.teacher.parameters())


def test_the_teacher_is_in_eval_mode_while_the_model_trains(build):
    model = build(dropout=0.1).train()
    assert model.backbone.training
    assert not any(module.training for module in model.teacher.modules())


def test_without_weights_of_the_teacher_it_is_a_copy_of_the_model(build):
    source, model = build(), build()
    weights = {k: v for k, v in source.state_dict().items() if not k.startswith('teacher.')}
    model.load_state_dict(weights)
    teacher = model.teacher.module
    for name, value in source.backbone.state_dict().items():
        assert teacher['backbone'].state_dict()[name].equal(value)
    for name, value in source.heads['mlm'].state_dict().items():
        assert teacher['mlm'].state_dict()[name].equal(value)


def test_a_complete_state_round_trips(build, batch):
    source, model = build(), build()
    source(batch(), mode='loss')
    source.update_momentum()
    model.load_state_dict(source.state_dict())
    data = batch()
    logs = []
    for each in (source, model):
        torch.manual_seed(1)
        logs.append(each.eval()(data, mode='loss'))
    assert all(logs[0][name].equal(logs[1][name]) for name in logs[0])


@torch.no_grad()
@pytest.mark.parametrize('streams', ['both', 'text'])
def test_match_scores_are_those_of_pairs_fused_one_by_one(build, batch, position_name, streams):
    heads = ['itc', 'itm']
    model = build(position_name, heads=heads, streams=streams).eval()
    for parameter in model.backbone.position.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    data = batch(size=3)
    image = model.encode_image(data.images).tokens
    text = model.encode_text(data.input_ids, data.attention_mask).tokens
    pairs = torch.tensor([[0, 0], [2, 1], [0, 2], [1, 1]])
    actual = model.match(image, text, pairs)
    for score, (i, t) in zip(actual, pairs, strict=True):
        fused = model.fuse(image.select(i[None]), text.select(t[None]))
        _, yes = model.heads['itm'](fused.text_tokens)[0]
        torch.testing.assert_close(score, yes, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_embeddings_have_unit_length(build, batch):
    model, data = build(), batch()
    image, text = model(data)
    for encoded in (image, text):
        torch.testing.assert_close(encoded.embedding.norm(dim=-1), torch.ones(4))
    assert image.tokens.grid_size == (3, 3)
    assert text.tokens.attention_mask.equal(data.attention_mask)


@torch.no_grad()
def test_the_relation_can_be_computed_from_outside(build, batch):
    model, data = build().eval(), batch()
    image, text = model(data)
    relation = model.relate(image.tokens, text.tokens)
    assert relation.distance.shape == relation.similarity.shape == (4, 10, 6, 4)
    assert build('none').relate(image.tokens, text.tokens) is None


@torch.no_grad()
def test_weights_work_at_another_resolution(config, batch):
    small, large = config('ape'), config('ape')
    large['backbone']['image_encoder']['image_size'] = 40
    model, larger = MODELS.build(small), MODELS.build(large)
    larger.load_state_dict(model.state_dict())
    image = larger.eval().encode_image(torch.randn(2, 3, 40, 40)).tokens
    text = larger.encode_text(*batch(size=2)[1:3]).tokens
    assert image.grid_size == (5, 5)
    assert larger.match(image, text, torch.tensor([[0, 1]])).isfinite().all()


def test_data_samples_go_through_the_preprocessor(build, samples):
    model = build()
    data = model.data_preprocessor(samples(['word1 word2', 'word3', 'word4']), training=True)
    assert isinstance(data['inputs'], ImageTextBatch)
    assert total_loss(model(**data, mode='loss')).isfinite()


def overfit(model, data, steps, is_done=lambda logs: False):
    """Trains on one batch for some steps or until it is done; returns the logs' last averages."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=3e-3, fused=True)
    history = []
    for _ in range(steps):
        logs = model(data, mode='loss')
        optimizer.zero_grad()
        total_loss(logs).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        model.update_momentum()
        history.append({name: value.item() for name, value in logs.items()})
        averages = {name: sum(logs[name] for logs in history[-5:]) / 5 for name in logs}
        if len(history) >= 5 and is_done(averages):
            break
    return averages


@pytest.mark.parametrize(
    ('position', 'streams'),
    [
        ('none', 'text'),
        ('ape+rpe', 'both'),
        ('uniform', 'both'),
        ('ace_rpe', 'both'),
        ('ace_rpe bias', 'both'),
        ('ace_rpe', 'text'),
    ],
)
def test_itc_and_itm_overfit_a_few_pairs(build, batch, position, streams):
    heads = ['itc', 'itm']
    model = build(position, heads=heads, streams=streams, momentum=0.5, queue_length=0).train()
    data = batch(size=3)

    def is_done(logs):
        return logs['loss_itc'] < 0.1 and logs['loss_itm'] < 0.1

    assert is_done(overfit(model, data, 80, is_done))
    with torch.no_grad():
        image, text = model.eval()(data)
    assert (image.embedding @ text.embedding.T).argmax(1).tolist() == [0, 1, 2]


def test_mlm_and_mim_overfit_a_few_pairs(build, batch):
    model = build(heads=['mlm', 'mim']).train()
    data = batch(size=2)
    data = data._replace(images=data.images[:, :, :1, :1].expand(-1, -1, 24, 24).contiguous())
    first = overfit(model, data, 5)

    def is_done(last):
        return (
            last['loss_mlm'] < 0.2 * first['loss_mlm']
            and last['loss_mim'] < 0.3 * first['loss_mim']
        )

    assert is_done(overfit(model, data, 100, is_done))
    head, colours = model.heads['mim'], data.images[:, :, 0, 0]  # each image is of one
    with torch.no_grad():
        mask = head.mask_patches(data.images)
        image = model.backbone.image_tokens(data.images, mask, head.mask_token)
        text = model.encode_text(data.input_ids, data.attention_mask).tokens
        pixels = head.decoder(model.fuse(image, text).image_tokens[:, 1:]).unflatten(2, (3, -1))
    error = (pixels - colours[:, None, :, None]).abs()[mask].mean()
    blind = (colours[0] - colours[1]).abs().mean() / 2  # of the best constant
    assert error < 0.3 * blind


def test_the_anchor_loss_overfits_a_few_pairs(build, batch):
    model = build(heads=['ace'], momentum=0.5, queue_length=0).train()
    data = batch(size=3)
    logs = overfit(model, data, 300, lambda logs: logs['hinge_open'] == 0)
    assert logs['hinge_open'] < 0.2
    with torch.no_grad():
        image, text = model.eval()(data)
    assert (image.embedding @ text.embedding.T).argmax(1).tolist() == [0, 1, 2]


def test_matching_without_a_contrastive_head_is_an_error(config):
    message = 'hard negatives are sampled by a contrastive head'
    with pytest.raises(ValueError, match=message):
        MODELS.build(config(heads=['itm']))


def test_widths_that_differ_are_an_error(config):
    broken = config()
    broken['backbone']['fusion']['embed_dims'] = 64
    with pytest.raises(ValueError, match='image_encoder 32, text_encoder 32, fusion 64'):
        MODELS.build(broken)


def test_texts_longer_than_the_positions_of_the_text_encoder_are_an_error(config):
    broken = config()
    broken['backbone']['text_encoder']['config']['max_position_embeddings'] = 16
    broken['data_preprocessor']['max_length'] = 17
    with pytest.raises(ValueError, match='max_length=17, but the text encoder has 16 positions'):
        MODELS.build(broken)


def test_a_vocabulary_larger_than_the_text_encoders_is_an_error(config):
    broken = config()
    broken['backbone']['text_encoder']['config']['vocab_size'] = 30
    with pytest.raises(ValueError, match='the tokenizer has 40 words but .*vocab_size is 30'):
        MODELS.build(broken)


def test_an_unknown_mode_is_an_error(build, batch):
    with pytest.raises(ValueError, match=r"mode='predict', expected one of \['loss', 'tensor'\]"):
        build(heads=['itc'])(batch(), mode='predict')


# across ranks


def contrast(cfg, batches):
    """Two steps' losses and summed gradient, and the queue they leave."""
    torch.manual_seed(0)
    model = MODELS.build(cfg)
    losses = []
    for data in batches:
        loss = total_loss(model(data, mode='loss'))
        loss.backward()
        losses.append(loss.detach())
    gradient = model.backbone.image_proj.weight.grad
    return dict(queue=model.queue.state_dict(), losses=losses, gradient=gradient)


def contrast_on_rank(rank, cfg, batches, folder):
    register_all()  # first: what torch imports then may keep the processes' connections for good
    distributed.init_process_group('gloo', f'file://{folder}/store', rank=rank, world_size=2)
    halves = [ImageTextBatch(*(x.chunk(2)[rank] for x in data)) for data in batches]
    torch.save(contrast(cfg, halves), f'{folder}/{rank}.pth')
    distributed.destroy_process_group()


def test_two_ranks_contrast_and_fill_the_queue_as_one_process_with_the_joint_batch(
    config, batch, tmp_path
):
    cfg = config(heads=['itc', 'ace'])
    batches = [batch(size=6, image_ids=[1, 2, 3, 4, 1, 5]), batch(size=6)]
    arguments = cfg, batches, str(tmp_path)
    start_processes(contrast_on_rank, arguments, nprocs=2, start_method='forkserver')
    joint = contrast(cfg, batches)
    ranks = [torch.load(tmp_path / f'{rank}.pth', weights_only=True) for rank in range(2)]
    for rank in ranks:
        for name, value in joint['queue'].items():
            torch.testing.assert_close(rank['queue'][name], value)
    mean_gradient = (ranks[0]['gradient'] + ranks[1]['gradient']) / 2
    torch.testing.assert_close(mean_gradient, joint['gradient'], atol=1e-5, rtol=1e-4)
    for step in range(2):
        mean_loss = (ranks[0]['losses'][step] + ranks[1]['losses'][step]) / 2
        torch.testing.assert_close(mean_loss, joint['losses'][step], atol=1e-5, rtol=1e-4)
