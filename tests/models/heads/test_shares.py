"""Shares in percent, and those of nothing, are no shares."""

from functools import partial

import pytest

from xmodal.models.heads import LxmertITMHead, LxmertMLMHead, MIMHead, MLMHead, ObjectHead

MASKED = [
    (partial(MLMHead, 8, 10), 'mask_probability'),
    (partial(LxmertMLMHead, 8, 10), 'mask_probability'),
    (partial(ObjectHead, 8, 4), 'mask_probability'),
    (partial(MIMHead, 8, 16), 'ratio'),
    (partial(LxmertITMHead, 8), 'replace_probability'),
]


@pytest.mark.parametrize(('build', 'key'), MASKED, ids=lambda value: getattr(value, 'func', value))
@pytest.mark.parametrize('share', [15, 1.5, 0, -0.1])
def test_a_head_that_would_mask_all_or_nothing_is_refused(build, key, share):
    build(**{key: 0.15})
    with pytest.raises(ValueError, match=rf'heads\.\w+\.{key}={share}, expected a share above 0'):
        build(**{key: share})


def test_all_words_may_be_masked_but_not_all_texts_replaced():
    for build, key in MASKED[:-1]:
        build(**{key: 1})
    with pytest.raises(ValueError, match='replace_probability=1.0, expected .* and below 1'):
        LxmertITMHead(8, replace_probability=1.0)


def test_words_in_focus_may_be_the_only_targets():
    assert MLMHead(8, 10, mask_probability=0, focus=['left']).mask_probability == 0
    with pytest.raises(ValueError, match='mask_probability=15'):
        MLMHead(8, 10, mask_probability=15, focus=['left'])
