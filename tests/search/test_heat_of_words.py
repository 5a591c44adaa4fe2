"""Heat maps are of words as the text has them, also where a tokenizer makes byte pairs of them."""

import numpy as np
from transformers import RobertaTokenizer

from xmodal.search.model import word_maps
from xmodal.visualization.grad_cam import grad_cam

WORDS = '<s> <pad> </s> <unk> <mask> a r i n g s Ġ Ġr in Ġrin Ġring'.split()
MERGES = [('Ġ', 'r'), ('i', 'n'), ('Ġr', 'in'), ('Ġrin', 'g')]


def test_the_map_of_a_word_is_the_mean_of_those_of_its_byte_pairs(inferencer, tiny_world):
    vocabulary = {word: index for index, word in enumerate(WORDS)}
    preprocessor = inferencer.model.data_preprocessor
    preprocessor.tokenizer = RobertaTokenizer(vocab=vocabulary, merges=MERGES)
    file = next(tiny_world.glob('images/test/*/*.png'))
    image, text = inferencer.encode([file], ['a rings'])
    (maps,), (whole,) = grad_cam(inferencer.model, image.tokens, text.tokens)
    assert len(maps) == 5  # <s>, a, Ġring, s, </s>
    names, found = zip(*word_maps(inferencer, 'a rings', file.read_bytes()), strict=True)
    assert names == ('', 'a', 'rings')
    expected = whole, maps[1], (maps[2] + maps[3]) / 2
    np.testing.assert_allclose(np.stack(found), np.stack(expected), rtol=1e-5, atol=1e-12)
