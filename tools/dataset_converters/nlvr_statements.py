"""Writes statements of a grammar about the scenes of an NLVR file.

    python tools/dataset_converters/nlvr_statements.py data/nlvr1/hidden.json \\
        --out data/nlvr1/hidden_statements.json --vocab data/nlvr1/vocab.txt
    python tools/dataset_converters/nlvr_statements.py data/nlvr1/hidden.json --boxes \\
        --out data/nlvr1/hidden_boxes.json --words data/nlvr1/hidden_words.json

Each statement has two images, in ALBEF's list: it is true of one and false of the other, so its
words say nothing about the label. Half of the pairs of scenes are of one presentation, as far as
its scenes differ. With ``--boxes`` a statement is about the left box of its images.
"""

import argparse
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tqdm import tqdm

from xmodal.datasets.json_stream import read_json_lines
from xmodal.datasets.nlvr_scene import ORDERS, Scene, read_scenes
from xmodal.datasets.nlvr_statements import draw_box_statement, draw_statement
from xmodal.datasets.shapes.grammar import SPECIAL_TOKENS
from xmodal.datasets.text import clean_caption
from xmodal.engine.command_line import ShowDefaults, at_least
from xmodal.engine.errors import run_or_explain
from xmodal.files import atomic_open, require_new, write_json

TRIES = 40  # scenes looked at for a statement; one that they do not decide is dropped
MOST_DROPPED = 1000  # one after another
Drawn = tuple[str, list[tuple[Scene, int]]]  # a text; images, a scene in an order of its boxes


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('file', type=Path, help="NLVR's file with the scenes")
    parser.add_argument('--out', type=Path, required=True, help='file to write; must not exist')
    parser.add_argument(
        '--statements', type=at_least(1), default=12800, help='each with two images'
    )
    parser.add_argument('--boxes', action='store_true', help='statements about single boxes')
    parser.add_argument(
        '--vocab', type=Path, help="also writes the words, and those of the file's statements"
    )
    parser.add_argument(
        '--words', type=Path, help="also writes the true ones, in LXMERT's pre-training format"
    )
    parser.add_argument('--seed', type=int, default=0, help='of all random choices')
    return parser.parse_args()


class ScenePairs:
    """Draws statements about scenes, with a true and a false one.

    Args:
        scenes: of towers and of scattered items.
    """

    def __init__(self, scenes: list[Scene]) -> None:
        self.scenes = _by_kind((scene, scene) for scene in scenes)
        presentations = defaultdict(list)
        for scene in scenes:
            presentations[scene.identifier.partition('-')[0]].append(scene)
        self.presentations = _by_kind((group[0], group) for group in presentations.values())

    def draw(self, towers: bool, rng: random.Random) -> Drawn | None:
        """A statement with a true and a false image; None when a few scenes are all alike."""
        statement = draw_statement(rng, towers)
        if rng.random() < 0.5:
            groups = _sample(self.presentations[towers], rng)
        else:
            groups = [_sample(self.scenes[towers], rng)]
        for group in groups:
            true, false = _split(group, statement.holds)
            if true and false:
                images = [(rng.choice(x), rng.randrange(len(ORDERS))) for x in (true, false)]
                return statement.text, images
        return None


class BoxPairs:
    """Draws statements about single boxes, with a true and a false one: the left one of an image.

    Args:
        scenes: of towers and of scattered items.
    """

    def __init__(self, scenes: list[Scene]) -> None:
        self.images = _by_kind(
            (scene, (scene, order)) for scene in scenes for order in range(len(ORDERS))
        )

    def draw(self, towers: bool, rng: random.Random) -> Drawn | None:
        """A statement with a true and a false image; None when a few boxes are all alike."""
        statement = draw_box_statement(rng, towers)
        images = _sample(self.images[towers], rng)
        true, false = _split(images, lambda x: statement.holds(x[0].boxes[ORDERS[x[1]][0]]))
        return (statement.text, [true[0], false[0]]) if true and false else None


def _by_kind(items: Iterable[tuple[Scene, object]]) -> dict[bool, list]:
    """Items of scenes, by whether these are of towers."""
    kinds = defaultdict(list)
    for scene, item in items:
        kinds[scene.has_towers].append(item)
    return kinds


def _sample(items: list, rng: random.Random) -> list:
    return rng.sample(items, min(TRIES, len(items)))


def _split(items: list, holds: Callable[[object], bool]) -> tuple[list, list]:
    """The items for which something holds, and the others."""
    true, false = [], []
    for item in items:
        (true if holds(item) else false).append(item)
    return true, false


def draw_examples(
    scenes: list[Scene], pairs: ScenePairs | BoxPairs, split: str, count: int, rng: random.Random
) -> Iterator[dict]:
    """A true and a false example of each of ``count`` statements.

    Raises:
        ValueError: when no statement is found that tells two scenes apart.
    """
    dropped = 0
    while count:
        if (drawn := pairs.draw(rng.choice(scenes).has_towers, rng)) is None:
            dropped += 1
            if dropped == MOST_DROPPED:
                raise ValueError(
                    f'no statement of {dropped} is true of one scene and false of another: '
                    f'{len(scenes)} scenes are too few, or too much alike'
                )
            continue
        count, dropped = count - 1, 0
        text, images = drawn
        for (scene, order), label in zip(images, ('true', 'false'), strict=True):
            image = f'{split}/{split}-{scene.identifier}-{order}.png'
            yield {'images': [image], 'sentence': text, 'label': label}


def true_sentences(examples: list[dict]) -> list[dict]:
    """The true sentences of each image, in LXMERT's pre-training format."""
    sentences = defaultdict(list)
    for example in examples:
        if example['label'] == 'true':
            sentences[Path(example['images'][0]).stem].append(example['sentence'])
    return [{'img_id': image, 'sentf': {'grammar': x}} for image, x in sentences.items()]


def write_vocabulary(file: Path, sentences: Iterable[str]) -> int:
    """Writes the words of sentences in the format of BERT, and returns how many lines."""
    words = {word for sentence in sentences for word in clean_caption(sentence).split()}
    lines = [*SPECIAL_TOKENS, *sorted(words)]
    with atomic_open(file) as output:
        output.write('\n'.join(lines) + '\n')
    return len(lines)


def main() -> None:
    """Writes the file, and the words."""
    args = parse_args()
    for option in ('out', 'vocab', 'words'):
        if (file := getattr(args, option)) is not None:
            require_new(f'--{option}', file)
    scenes, rng = list(read_scenes(args.file)), random.Random(args.seed)
    pairs = (BoxPairs if args.boxes else ScenePairs)(scenes)
    drawn = draw_examples(scenes, pairs, args.file.stem, args.statements, rng)
    examples = list(tqdm(drawn, 'drawing', 2 * args.statements, leave=False, unit=' examples'))
    write_json(args.out, examples)
    if args.words is not None:
        write_json(args.words, true_sentences(examples))
    print(f'{args.out}: {args.statements} statements')
    if args.vocab is not None:
        human = [line.text('sentence') for _, line in read_json_lines(args.file)]
        sentences = [example['sentence'] for example in examples]
        print(f'{args.vocab}: {write_vocabulary(args.vocab, [*sentences, *human])} words')


if __name__ == '__main__':
    run_or_explain(main)
