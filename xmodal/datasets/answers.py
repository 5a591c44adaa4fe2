"""Lists, normal forms and scores of answers, as in VQA's evaluation and LXMERT's answer table."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from xmodal.fields import Fields
from xmodal.files import explain_errors, read_json

_PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
_COMMA_IN_NUMBER = re.compile(r'\d,\d')
_FULL_STOP = re.compile(r'\.(?!\d)')  # not the point of "0.5"
_NUMBER_WORDS = ('zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine')
_DIGITS = {word: str(value) for value, word in enumerate((*_NUMBER_WORDS, 'ten'))}
_DIGITS['none'] = '0'
_ARTICLES = ('a', 'an', 'the')
# Marks with the spaces that people do not write: it ' s, 10 : 30, 1 , 000, $ 5, 5 %.
_SET_APART = re.compile(
    r"(?<=\w) ?(['/-]) ?(?=\w)|(?<=\d) ?([:.]) ?(?=\d)|(?<=\d) ?(,) ?(?=\d{3}\b)"
    r'|(?<=[$#]) (?=\d)| (?=%)'
)
_LXMERT_WORDS = {word: str(value) for value, word in enumerate((*_NUMBER_WORDS, 'ten')) if value}
_LXMERT_WORDS['grey'] = 'gray'

# Words whose forgotten apostrophe is restored; of two apostrophes, one may be missing. Words that
# are English without their apostrophe ("its", "well") are not among them.
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
_WITH_APOSTROPHE["somebody'd"] = 'somebodyd'  # the reverse of the others, as in the official script


def read_answer_list(file: str | Path, key: str) -> list[str]:
    """The answers of a JSON file, a list of strings; ``key`` of the config names it.

    Raises:
        FileNotFoundError: when it does not exist.
        ValueError: when it is no list of answers.
    """
    file = Path(file)
    if not file.is_file():
        raise FileNotFoundError(
            f'{key}: {file} does not exist (from {Path.cwd()}). docs/tasks/vqa.md and '
            'docs/regions.md say how to make it'
        )
    with explain_errors(file, f'a list of answers, ["yes", …] ({key})'):
        answers = Fields({'the content': read_json(file)}).texts('the content')
        if not answers:
            raise ValueError('it has no answer')
        return answers


def join_marks(answer: str) -> str:
    """An answer made of word pieces as people write it, "it's 10:30" in place of "it ' s 10 : 30".

    BERT's tokenizer sets punctuation apart, and VQA's evaluation takes apostrophes, colons and the
    points of numbers with spaces for other answers.
    """
    return _SET_APART.sub(lambda match: ''.join(filter(None, match.groups())), answer)


def normalize_lxmert_answer(answer: str) -> str:
    """An answer in the form of LXMERT's joint answer table.

    Lower case, without a final full stop or a leading article; an answer that is a number word from
    one to ten becomes digits, and "grey" becomes "gray". Simpler than :func:`normalize_answer`:
    punctuation stays.
    """
    text = answer.lower().removesuffix('.').strip()
    for article in _ARTICLES:
        text = text.removeprefix(f'{article} ').strip()
    return _LXMERT_WORDS.get(text, text)


def normalize_answer(answer: str) -> str:
    """An answer in the form that VQA's evaluation compares.

    Lower case, number words up to ten as digits, no articles, no punctuation. A punctuation mark
    becomes a space; it is deleted where the answer has the same mark next to a space, or a number
    with a comma. Apostrophes and decimal points stay, and forgotten apostrophes are restored.
    """
    text = answer
    has_comma_number = _COMMA_IN_NUMBER.search(answer)
    for mark in _PUNCTUATION:
        next_to_space = f'{mark} ' in answer or f' {mark}' in answer
        text = text.replace(mark, '' if next_to_space or has_comma_number else ' ')
    text = _FULL_STOP.sub('', text)
    words = (_DIGITS.get(word, word) for word in text.lower().split())
    return ' '.join(_WITH_APOSTROPHE.get(word, word) for word in words if word not in _ARTICLES)


def answer_scores(answers: Sequence[str]) -> dict[str, float]:
    """The score of each normalised answer to a question, of all answers that people gave."""
    counts = Counter(map(normalize_answer, answers))
    return {answer: answer_score(count, len(answers)) for answer, count in counts.items()}


def answer_score(count: int, people: int) -> float:
    """The score by VQA's accuracy of an answer that ``count`` of ``people`` gave.

    As in :func:`xmodal.evaluation.vqa_accuracy`, it is the mean over leaving out each person of
    min(1, n / 3), where n of the others gave the answer. The answer of a single person scores 1.
    """
    if people == 1:
        return float(count)
    left_out, kept = (min(1.0, n / 3) for n in (count - 1, count))
    return (count * left_out + (people - count) * kept) / people
