"""The contrastive losses against literal loops."""

import math

import pytest
import torch
from torch.nn.functional import normalize

from xmodal.models.base.queue import EMPTY, Keys
from xmodal.models.heads import AnchorHead, ITCHead
from xmodal.structures import Encoded, ImageTextBatch, Tokens

# Samples 0 and 2 show one image, 1 and 3 share one caption; the queue holds both again.
IMAGE_IDS, TEXT_IDS = [1, 2, 1, 3], [10, 11, 12, 11]
QUEUE_IMAGE_IDS, QUEUE_TEXT_IDS = [3, 9, 1, EMPTY, EMPTY], [13, 12, 10, EMPTY, EMPTY]


def vectors(count, width=8):
    return normalize(torch.randn(count, width), dim=-1)


@pytest.fixture
def case():
    mask = torch.arange(5)[None] < torch.tensor([[5], [4], [5], [3]])
    image = Encoded(Tokens(torch.randn(4, 7, 6)), vectors(4).requires_grad_())
    text = Encoded(Tokens(torch.randn(4, 5, 6), mask), vectors(4).requires_grad_())
    ids, text_ids = torch.tensor(IMAGE_IDS), torch.tensor(TEXT_IDS)
    own = Keys(vectors(4), vectors(4), ids, text_ids)
    filled = [torch.cat([vectors(3), torch.zeros(2, 8)]) for _ in range(2)]
    queue = Keys(*filled, torch.tensor(QUEUE_IMAGE_IDS), torch.tensor(QUEUE_TEXT_IDS))
    batch = ImageTextBatch(None, None, mask, ids, text_ids, ids)
    return image, text, own.join(queue), batch, own


def same(sample, key):
    image_ids, text_ids = IMAGE_IDS + QUEUE_IMAGE_IDS, TEXT_IDS + QUEUE_TEXT_IDS
    return image_ids[key] == IMAGE_IDS[sample] or text_ids[key] == TEXT_IDS[sample]


def directions(image, text, keys, own):
    yield image.embedding, own.image_embeddings, keys.text_embeddings, own.text_embeddings
    yield text.embedding, own.text_embeddings, keys.image_embeddings, own.image_embeddings


def literal_softmax(row):
    total = math.fsum(math.exp(x) for x in row)
    return [math.exp(x) / total for x in row]


@pytest.mark.parametrize('alpha', [0.0, 0.4])
def test_itc_is_cross_entropy_with_mass_on_all_of_the_same_image_or_text(case, alpha):
    image, text, keys, batch, own = case
    written = range(7)  # the last two places of the queue are empty
    expected = 0.0
    for vector, teacher, candidates, _ in directions(image, text, keys, own):
        for b in range(4):
            online, taught = (
                literal_softmax([(x[b] @ candidates[k]).item() / 0.07 for k in written])
                for x in (vector, teacher)
            )
            mates = [k for k in written if same(b, k)]
            for k in written:
                hard = 1 / len(mates) if k in mates else 0.0
                target = (1 - alpha) * hard + alpha * taught[k]
                expected -= target * math.log(online[k]) / 4 / 2
    found = ITCHead(0.07).loss(image, text, keys, batch, own, alpha)
    assert found['loss_itc'].item() == pytest.approx(expected, rel=1e-4)


def test_itc_has_finite_gradients_beside_empty_places(case):
    image, text, *_ = case
    head = ITCHead(0.01)
    head.loss(*case, 0.4)['loss_itc'].backward()
    for tensor in (image.embedding, text.embedding, head.log_temperature):
        assert tensor.grad.isfinite().all() and tensor.grad.any()


@pytest.mark.parametrize(('start', 'held'), [(5.0, 0.5), (1e-6, 0.001), (0.07, 0.07)])
def test_the_temperature_stays_within_bounds_and_is_not_written_to(start, held):
    head = ITCHead(start)
    assert head.temperature.item() == pytest.approx(held)
    # A compiled step computes it again in the backward pass.
    assert head.log_temperature.item() == pytest.approx(math.log(start))


@pytest.mark.parametrize('bound', [0.5, 0.001])
def test_a_temperature_at_its_bound_can_leave_it(bound):
    head = ITCHead(bound)
    for inwards in (-1, 1):  # two steps beyond the bound, and two back
        for _ in range(2):
            slope = math.copysign(1, math.log(bound / 0.1)) * inwards
            (slope * head.temperature.log()).backward()
            with torch.no_grad():
                head.log_temperature -= 0.2 * head.log_temperature.grad
            head.log_temperature.grad = None
    assert abs(math.log(head.temperature.item() / bound)) == pytest.approx(0.4, abs=1e-5)


def test_itc_under_bfloat16_autocast_is_float32(case):
    expected = ITCHead().loss(*case, 0.4)['loss_itc']
    with torch.autocast('cpu', torch.bfloat16):
        assert ITCHead().loss(*case, 0.4)['loss_itc'].equal(expected)


def test_the_anchor_loss_is_equations_1_and_2(case):
    image, text, keys, batch, own = case
    head = AnchorHead(scale=3.0, token_scale=10.0, margin=0.1)
    hinges = []
    for vector, _, candidates, partners in directions(image, text, keys, own):
        for b in range(4):
            negatives = [k for k in range(7) if not same(b, k)]
            total = math.fsum(math.exp(3 * (vector[b] @ candidates[k]).item()) for k in negatives)
            positive = (vector[b] @ partners[b]).item()
            hinges.append(-min(0.0, positive - 0.1 - math.log(total) / 3))
    tokens = 0.0
    for b in range(4):
        cosines = [
            torch.cosine_similarity(x, y, dim=0).item()
            for x in image.tokens.embeddings[b, 1:]
            for y in text.tokens.embeddings[b, 1 : text.tokens.attention_mask[b].sum()]
        ]
        tokens += math.log(math.fsum(math.exp(10 * c) for c in cosines)) / 10 / 4
    found = head.loss(*case, 0.4)
    expected = (sum(hinges) / 4 - tokens) / 2
    assert found['loss_ace'].item() == pytest.approx(expected, rel=1e-4)
    assert found['token_log_sum_exp'].item() == pytest.approx(tokens, rel=1e-4)
    assert found['hinge_open'].item() == sum(h > 0 for h in hinges) / 8


def test_the_anchor_loss_has_finite_gradients_with_an_empty_queue_and_one_image(case):
    image, text, _, batch, own = case
    one = torch.ones(4, dtype=torch.int64)
    own = own._replace(image_ids=one)
    empty = Keys(
        torch.zeros(5, 8), torch.zeros(5, 8), one.new_full((5,), EMPTY), one.new_full((5,), EMPTY)
    )
    found = AnchorHead().loss(image, text, own.join(empty), batch._replace(image_ids=one), own, 0.0)
    found['loss_ace'].backward()
    assert found['loss_ace'].isfinite()
    assert found['hinge_open'] == 0
