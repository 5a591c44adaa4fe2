"""Builds a vocabulary of words from training captions.

    python tools/dataset_converters/build_vocab.py data/f30k_precomp/train_caps.txt \\
        --out data/f30k_precomp/vocab.json

The layout is that of VSE++, SCAN and SGRAF, but the ids are different: a published checkpoint needs
the vocabulary that it came with. Words are sorted by their number of occurrences, equally frequent
words alphabetically; those with fewer than --least occurrences become <unk>. Use training captions
only: a word that occurs only in test captions would have a random vector and would tell the model
more than it should know.
"""

import argparse
from collections import Counter
from pathlib import Path

from tqdm import tqdm

from xmodal.datasets.precomp_captions import read_filled_lines
from xmodal.engine.command_line import ShowDefaults, at_least
from xmodal.engine.errors import run_or_explain
from xmodal.files import LFS_HINT, LFS_POINTER, FileError, reads, require_new
from xmodal.vocabulary import SPECIAL_WORDS, Vocabulary, split_words


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('captions', type=Path, nargs='+', help='files with one caption per line')
    parser.add_argument('--out', type=Path, required=True, help='file to write; must not exist')
    parser.add_argument(
        '--least', type=at_least(1), default=4, help='minimum number of occurrences'
    )
    return parser.parse_args()


@reads('one caption a line, in UTF-8')
def read_captions(file: Path) -> list[str]:
    """The captions of a file."""
    captions = read_filled_lines(file)
    if not captions:
        raise FileError(f'{file} has no caption')
    first = captions[0]
    if first.startswith(LFS_POINTER):
        raise FileError(f'{file}: {LFS_HINT}')
    # "<PERSON> walks" is a caption of CC12M.
    if first.lower().startswith(('[', '{', '<!', '<html', '<?xml')) or '\0' in first[:20]:
        raise FileError(
            f'{file} begins with {first[:20]!r}, as JSON, a web page or a table of NumPy: expected '
            'one caption a line'
        )
    return captions


def main() -> None:
    """Builds the vocabulary."""
    args = parse_args()
    require_new('--out', args.out)
    captions = [line for file in args.captions for line in read_captions(file)]
    bar = tqdm(captions, 'counting words', unit=' captions', leave=False)
    counts = Counter(word for caption in bar for word in split_words(caption))
    if not counts:
        raise FileError(f'{", ".join(map(str, args.captions))}: there is no word in the captions')
    kept = [word for word, count in counts.items() if count >= args.least]
    kept = sorted(set(kept) - set(SPECIAL_WORDS), key=lambda word: (-counts[word], word))
    if not kept:
        raise ValueError(f'--least={args.least}: no word occurs so often')
    Vocabulary([*SPECIAL_WORDS, *kept]).write(args.out)
    coverage = sum(counts[word] for word in kept) / counts.total()
    print(
        f'{args.out}: {len(kept) + len(SPECIAL_WORDS)} words (vocab_size of the text encoder), '
        f'{coverage:.2%} of the {counts.total()} in {len(captions)} captions'
    )


if __name__ == '__main__':
    run_or_explain(main)
