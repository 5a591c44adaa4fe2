"""Writes the tables of the models into README.md and docs/zoo.md, from configs/*/metafile.yml.

Usage::

    python tools/analysis/zoo_table.py
"""

import argparse
from pathlib import Path

from xmodal.engine.errors import run_or_explain
from xmodal.zoo.metafile import CONFIGS
from xmodal.zoo.table import DOCUMENTS, insert


def main() -> None:
    """Writes the tables."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    root: Path = CONFIGS.parent
    for name, kind, make in DOCUMENTS:
        file = root / name
        text = file.read_text(encoding='utf-8')
        changed = insert(text, kind, make())
        file.write_text(changed, encoding='utf-8')
        print(f'{name}: {"the same" if changed == text else "changed"}')


if __name__ == '__main__':
    run_or_explain(main)
