"""Image-text matching with texts of which a word is turned around."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from xmodal.models.heads import ITMHead
from xmodal.registry import MODELS

OPPOSITES = [('word0', 'word1'), ('word2', 'word3')]  # ids 5 and 6, 7 and 8
OF = {5: 6, 6: 5, 7: 8, 8: 7}


@pytest.fixture
def make(config):
    """Builds a tiny pre-trainer with the head as its ITM."""

    def of(opposites=OPPOSITES):
        settings = config(heads=('itc', 'itm'), queue_length=0, momentum=None)
        settings['heads']['itm'] = dict(type='WordSwapITMHead', opposites=opposites, hardness=0.0)
        return MODELS.build(settings)

    return of


def test_one_word_of_each_text_is_turned_around(make):
    head = make().heads['itm']
    input_ids = torch.tensor([[2, 5, 20, 7, 3], [2, 21, 22, 23, 3], [2, 8, 8, 3, 0]])
    seen = set()
    for _ in range(100):
        swapped, rows = head.swap(input_ids)
        assert rows.tolist() == [0, 2]
        for text, row in zip(swapped, rows, strict=True):
            (changed,) = (text != input_ids[row]).nonzero()[:, 0].tolist()
            assert int(text[changed]) == OF[int(input_ids[row, changed])]
            seen.add((int(row), changed))
    assert seen == {(0, 1), (0, 3), (2, 1), (2, 2)}


def test_texts_without_such_a_word_stay_as_they_are(make):
    head = make().heads['itm']
    swapped, rows = head.swap(torch.full((3, 4), 30))
    assert swapped.shape == (0, 4)
    assert rows.tolist() == []


@torch.no_grad()
def test_the_loss_is_that_of_the_batch_and_of_the_swapped_texts(make, batch, monkeypatch):
    model = make().eval()
    head = model.heads['itm']
    one = batch()
    one.input_ids[:, 1] = torch.tensor([5, 30, 7, 8])
    asked = []
    request_fusion = head.request_fusion
    monkeypatch.setattr(
        head, 'request_fusion', lambda *args: asked.append(request_fusion(*args)) or asked[-1]
    )
    values = model(one, mode='loss')
    (request,) = asked
    labels, weights = request.drawn
    assert labels.tolist() == [1] * 4 + [0] * 8 + [0] * 3
    assert request.pairs[12:].tolist() == [[0, 4], [2, 5], [3, 6]]
    losses, right = [], []
    for number, (image_row, text_row) in enumerate(request.pairs.tolist()):
        if text_row < 4:
            input_ids = one.input_ids[text_row : text_row + 1]
        else:
            input_ids = one.input_ids[image_row : image_row + 1].clone()
            input_ids[0, 1] = OF[int(input_ids[0, 1])]
        mask = one.attention_mask[[text_row if text_row < 4 else image_row]]
        image = model.backbone.encode_image(one.images[[image_row]]).tokens
        text = model.backbone.encode_text(input_ids, mask).tokens
        logits = head(model.backbone.fuse(image, text).text_tokens)
        losses.append(cross_entropy(logits, labels[[number]]).item())
        if text_row >= 4:
            right.append(float(logits[0, 0] > logits[0, 1]))
    expected = sum(loss * float(w) for loss, w in zip(losses, weights, strict=True))
    assert float(values['loss_itm']) == pytest.approx(expected / float(weights.sum()), abs=1e-5)
    assert float(values['swap_accuracy']) == pytest.approx(sum(right) / 3)


def test_a_batch_without_such_words_is_that_of_itm_and_encodes_as_often(make, batch, monkeypatch):
    model, one = make().eval(), batch()
    calls = []
    text_tokens = model.backbone.text_tokens
    monkeypatch.setattr(
        model.backbone, 'text_tokens', lambda *args: calls.append(args) or text_tokens(*args)
    )
    one.input_ids[:, 1] = 5
    model(one, mode='loss')
    with_words = len(calls)
    one.input_ids[(one.input_ids > 3) & (one.input_ids < 9)] = 30
    torch.manual_seed(0)
    values = model(one, mode='loss')
    assert len(calls) == 2 * with_words  # the ranks of FSDP wait for each other in every pass
    assert 'swap_accuracy' not in values
    monkeypatch.setattr(model.heads['itm'].__class__, 'request_fusion', ITMHead.request_fusion)
    torch.manual_seed(0)
    assert float(values['loss_itm']) == pytest.approx(float(model(one, mode='loss')['loss_itm']))


@pytest.mark.parametrize(
    ('opposites', 'message'),
    [
        ([], 'opposites is empty'),
        ([('word0', 'above')], "'above', which the tokenizer reads as"),
        ([('word0', '[SEP]')], "'\\[SEP\\]', which the tokenizer reads as"),
        ([('word0', 'word1'), ('word2', 'word0')], "opposites has 'word0' twice"),
        ([('word0', 'word1'), ('word1', 'word0')], "opposites has 'word[01]' twice"),
        ([('word0', 'word0')], "opposites has 'word0' twice"),
    ],
)
def test_words_that_cannot_be_swapped_are_an_error(make, opposites, message):
    with pytest.raises(ValueError, match=message):
        make(opposites)
