"""Which answers VQA's official evaluation, and LXMERT's answer table, take for the same."""

import re

_PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
_COMMA_IN_NUMBER = re.compile(r'\d,\d')
_FULL_STOP = re.compile(r'\.(?!\d)')  # not the point of "0.5"
_NUMBER_WORDS = ('zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine')
_DIGITS = {word: str(number) for number, word in enumerate((*_NUMBER_WORDS, 'ten'))}
_DIGITS['none'] = '0'
_ARTICLES = ('a', 'an', 'the')
_LXMERT_WORDS = {word: str(number) for number, word in enumerate((*_NUMBER_WORDS, 'ten')) if number}
_LXMERT_WORDS['grey'] = 'gray'

# Words that get back a forgotten apostrophe; of several, one may be missing. What is an English
# word without it ("its", "well") is not among them.
_CONTRACTIONS = """
    ain't aren't can't could've couldn't couldn't've didn't doesn't don't hadn't hadn't've hasn't
    haven't he'd he'd've he's how'd how'll how's isn't it'd it'd've it'll ma'am might've mightn't
    mightn't've must've mustn't needn't not've o'clock oughtn't 'ow's'at shan't she'd've should've
    shouldn't shouldn't've somebody'd've somebody'll somebody's someone'd someone'd've someone'll
    someone's something'd something'd've something'll that's there'd there'd've there're there's
    they'd they'd've they'll they're they've 'twas wasn't we'd've we've weren't what'll what're
    what's what've when's where'd where's where've who'd who'd've who'll who's who've why'll why're
    why's won't would've wouldn't wouldn't've y'all y'all'd've y'all'll you'd you'd've you'll
    you're you've
""".split()
_WITH_APOSTROPHE = {
    word[: mark.start()] + word[mark.end() :]: word
    for word in _CONTRACTIONS
    for mark in re.finditer("'", word)
}
_WITH_APOSTROPHE["somebody'd"] = 'somebodyd'  # the other way round in the official script


def normalize_lxmert_answer(answer: str) -> str:
    """An answer as LXMERT's joint answer table has it.

    Lower case without a final full stop or a leading article, number words from one to ten as
    digits when they are all, "gray" for "grey". Coarser than :func:`normalize_answer`: marks stay.
    """
    text = answer.lower().removesuffix('.').strip()
    for article in _ARTICLES:
        text = text.removeprefix(f'{article} ').strip()
    return _LXMERT_WORDS.get(text, text)


def normalize_answer(answer: str) -> str:
    """An answer as VQA's evaluation compares it.

    Lower case, number words up to ten as digits, no articles, no punctuation: a mark becomes a
    space, or nothing where a space stands beside one like it or a number has a comma. Apostrophes
    and decimal points stay, and forgotten apostrophes are put back.
    """
    text = answer
    has_number = _COMMA_IN_NUMBER.search(answer)
    for mark in _PUNCTUATION:
        beside_space = f'{mark} ' in answer or f' {mark}' in answer
        text = text.replace(mark, '' if beside_space or has_number else ' ')
    text = _FULL_STOP.sub('', text)
    words = (_DIGITS.get(word, word) for word in text.lower().split())
    return ' '.join(_WITH_APOSTROPHE.get(word, word) for word in words if word not in _ARTICLES)
