"""A tool on two ranks that have imported all before they start: a script takes ten seconds to."""

import os
import socket
from functools import partial
from pathlib import Path

from xmodal.soak.process import start

RANKS = 2


def _be_rank(rank: int, port: int) -> None:
    """Sets what torchrun sets."""
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(RANKS),
        LOCAL_WORLD_SIZE=str(RANKS),
        MASTER_ADDR='127.0.0.1',
        MASTER_PORT=str(port),
    )


def run_on_ranks(script: str, *arguments: str | Path, folder: Path) -> None:
    """Runs it as ``tools/dist_train.sh`` and ``tools/dist_test.sh`` do; raises if a rank fails.

    Args:
        script: ``tools/train.py`` or ``tools/test.py``.
        arguments: of its command line.
        folder: for what the ranks print.
    """
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    words = [*map(str, arguments), '--launcher', 'pytorch']
    outputs = [folder / f'rank_{rank}.txt' for rank in range(RANKS)]
    ranks = [
        start(Path(script), words, output, partial(_be_rank, rank, port))
        for rank, output in enumerate(outputs)
    ]
    try:
        for rank in ranks:
            rank.join(timeout=240)
    finally:
        for rank in ranks:
            rank.kill()
            rank.join()
    assert all(rank.exitcode == 0 for rank in ranks), [o.read_text()[-3000:] for o in outputs]
