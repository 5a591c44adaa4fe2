"""Writes statements of a grammar about the scenes of an NLVR file, in NLVR's format.

    python tools/dataset_converters/nlvr_statements.py data/nlvr1/hidden.json \\
        --out data/nlvr1/hidden_synthetic.json

Each statement has two scenes: it is true of one and false of the other, so its words say nothing
about the label. Half of the pairs are of one presentation, as far as its scenes differ.
"""

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from tqdm import tqdm

from xmodal.datasets.nlvr_scene import Scene, read_scenes
from xmodal.datasets.nlvr_statements import Statement, draw_simple_statement, draw_statement
from xmodal.engine.command_line import ShowDefaults, at_least
from xmodal.engine.errors import run_or_explain
from xmodal.files import atomic_open, require_new

TRIES = 40  # scenes looked at for a statement; one that they do not decide is dropped
MOST_DROPPED = 1000  # one after another


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('file', type=Path, help="NLVR's file with the scenes")
    parser.add_argument('--out', type=Path, required=True, help='file to write; must not exist')
    parser.add_argument(
        '--statements', type=at_least(1), default=10000, help='each about two scenes'
    )
    parser.add_argument(
        '--simple', action='store_true', help='only that something exists: to begin with'
    )
    parser.add_argument('--seed', type=int, default=0, help='of all random choices')
    return parser.parse_args()


class ScenePairs:
    """Draws two scenes of one kind, of which a statement is true and false.

    Args:
        scenes: of towers, or of scattered items.
    """

    def __init__(self, scenes: list[Scene]) -> None:
        self.scenes = scenes
        presentations = defaultdict(list)
        for scene in scenes:
            presentations[scene.identifier.partition('-')[0]].append(scene)
        self.presentations = list(presentations.values())

    def draw(self, statement: Statement, rng: random.Random) -> tuple[Scene, Scene] | None:
        """A true and a false scene; None when none is found in a few tries."""
        if rng.random() < 0.5:
            groups = self._sample(self.presentations, rng)
        else:
            groups = [self._sample(self.scenes, rng)]
        for group in groups:
            true, false = [], []
            for scene in group:
                (true if statement.holds(scene) else false).append(scene)
            if true and false:
                return rng.choice(true), rng.choice(false)
        return None

    @staticmethod
    def _sample(items: list, rng: random.Random) -> list:
        return rng.sample(items, min(TRIES, len(items)))


def draw_examples(
    scenes: list[Scene],
    count: int,
    draw: Callable[[random.Random, bool], Statement],
    rng: random.Random,
) -> Iterator[list[dict]]:
    """The two examples of each of ``count`` statements.

    Raises:
        ValueError: when no statement is found that tells two scenes apart.
    """
    kinds = {kind: [s for s in scenes if s.has_towers == kind] for kind in (True, False)}
    pairs = {kind: ScenePairs(of_kind) for kind, of_kind in kinds.items()}
    dropped = 0
    while count:
        has_towers = rng.choice(scenes).has_towers
        statement = draw(rng, has_towers)
        if (drawn := pairs[has_towers].draw(statement, rng)) is None:
            dropped += 1
            if dropped == MOST_DROPPED:
                raise ValueError(
                    f'no statement of {dropped} is true of one scene and false of another: '
                    f'{len(scenes)} scenes are too few, or too much alike'
                )
            continue
        count, dropped = count - 1, 0
        yield [
            {'identifier': scene.identifier, 'sentence': statement.text, 'label': label}
            for scene, label in zip(drawn, ('true', 'false'), strict=True)
        ]


def main() -> None:
    """Writes the file."""
    args = parse_args()
    require_new('--out', args.out)
    scenes = list(read_scenes(args.file))
    draw = draw_simple_statement if args.simple else draw_statement
    examples = draw_examples(scenes, args.statements, draw, random.Random(args.seed))
    with atomic_open(args.out) as output:
        for pair in tqdm(examples, total=args.statements, unit=' statements'):
            output.writelines(f'{json.dumps(example)}\n' for example in pair)
    print(f'{args.out}: {args.statements} statements, {2 * args.statements} examples')


if __name__ == '__main__':
    run_or_explain(main)
