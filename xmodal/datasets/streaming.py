"""Streaming of image-text pairs from WebDataset tar shards."""

import math
import random
import re
from collections.abc import Callable, Iterator
from functools import partial
from glob import glob
from itertools import count, islice
from pathlib import Path

import torch
import webdataset as wds
from mmengine.dist import get_dist_info
from torch.utils.data import IterableDataset, get_worker_info

from xmodal.datasets.base import MAX_BROKEN_IMAGES
from xmodal.datasets.seeding import SeededDataset, derive_seed, isolated_random
from xmodal.datasets.tar_shard import IMAGES, read_shards
from xmodal.datasets.text import clean_caption
from xmodal.datasets.transforms import BrokenImageError, build_pipeline
from xmodal.fields import Fields, shorten
from xmodal.files import decode_json
from xmodal.registry import DATASETS

_MAX_SHARDS = 1_000_000


@DATASETS.register_module()
class WebDatasetShards(SeededDataset, IterableDataset):
    """Pairs of ``KEY.jpg`` and ``KEY.txt`` in tar shards, as written by img2dataset.

    An epoch shuffles the shards, distributes them over ranks and workers, and shuffles the samples
    of each worker in a buffer. All of this follows from the seed and the epoch. A worker that has
    read all its shards starts again, so the stream is endless: the training loop takes
    ``len(loader)`` batches per epoch, the same number on every rank. Where all workers have equally
    many samples, an epoch shows every sample once. Otherwise the workers with the most samples do
    not show all of them; which ones are left out changes with the epoch.

    Training resumes exactly at the start of an epoch. Within an epoch it skips the samples that
    were seen without decoding them. This is exact when no image was broken, with the number of
    ranks and workers of before.

    Pairs whose caption is empty after cleaning are skipped.

    Args:
        shards: a path with braces (``cc3m/{00000..00331}.tar``) or a glob, or a list of them.
        num_samples: pairs in an epoch, over all ranks.
        data_root: folder that ``shards`` is relative to.
        pipeline: transforms, as for :class:`xmodal.datasets.CaptionDataset`.
        shuffle_buffer: samples that each worker keeps for shuffling.
        max_words: captions are cleaned and truncated after so many words; None leaves them
            unchanged.
        seed: seed of all random choices; None for that of the run.

    Raises:
        FileNotFoundError: when a shard does not exist.
        ValueError: on the first iteration, when there are fewer shards than ranks x workers.
        BrokenImageError: while reading, after twenty broken images in a row.
    """

    def __init__(
        self,
        shards: str | list[str],
        num_samples: int,
        data_root: str = '',
        pipeline: list[dict | Callable] = (),
        shuffle_buffer: int = 1000,
        max_words: int | None = 30,
        seed: int | None = None,
    ) -> None:
        patterns = [shards] if isinstance(shards, str) else shards
        self.shards = [shard for p in patterns for shard in _find_shards(data_root, p)]
        super().__init__(seed)
        self.num_samples, self.shuffle_buffer = num_samples, shuffle_buffer
        self.clean = partial(clean_caption, max_words=max_words)
        self.pipeline = build_pipeline(pipeline)
        # Stored here, since a worker that is not forked does not know its rank.
        self._rank, self._world_size = get_dist_info()
        # Shared memory, so that a worker that lives through several epochs sees the next one.
        self._epoch = torch.zeros((), dtype=torch.int64).share_memory_()
        self._skipped = torch.zeros(2, dtype=torch.int64).share_memory_()

    def __len__(self) -> int:
        """Samples of one rank in an epoch."""
        return self.num_samples // self._world_size

    def set_epoch(self, epoch: int) -> None:
        """Chooses the order of the next iteration."""
        self._epoch.fill_(epoch)

    def skip(self, batches: int, batch_size: int) -> None:
        """Skips this rank's first ``batches`` in the next iteration."""
        self._skipped.copy_(torch.tensor([batches, batch_size]))

    def __iter__(self) -> Iterator[dict]:
        worker = get_worker_info()
        worker_id, num_workers = (worker.id, worker.num_workers) if worker else (0, 1)
        epoch, (batches, batch_size) = int(self._epoch), self._skipped.tolist()
        # Workers take turns. The first one that is asked now does the work of the one whose turn
        # it was, and has returned as many batches as that one had.
        worker_id = (worker_id + batches) % num_workers
        returned = batches // num_workers + (worker_id < batches % num_workers)
        order = random.Random(derive_seed(self.seed, epoch)).sample(self.shards, len(self.shards))
        first, step = self._rank * num_workers + worker_id, self._world_size * num_workers
        shards = order[first::step]
        if not shards:
            raise ValueError(
                f'{len(self.shards)} shard(s) are too few for {self._world_size} rank(s) x '
                f'{num_workers} worker(s): each worker reads different shards. Use fewer workers '
                '(train_dataloader.num_workers) or write smaller shards.'
            )
        return self._samples(shards, epoch, returned * batch_size)

    def _samples(self, shards: list[str], epoch: int, skipped: int) -> Iterator[dict]:
        """An endless stream of samples; a broken one is replaced by the next."""
        broken: list[str] = []
        pairs, in_a_row = self._pairs(shards, epoch, broken), 0
        for _ in islice(pairs, skipped):
            broken.clear()  # counted before the run was stopped
        for index, pair in enumerate(pairs):
            place = skipped + index
            pair |= {
                'image_id': derive_seed(pair['img_path']),
                'sample_index': place,
                'skipped': list(broken),
            }
            # With the place, since an epoch may show a pair again: else its crop would be the same.
            with isolated_random(self.seed, epoch, place, pair['img_path']):
                try:
                    sample = self.pipeline(pair)
                except BrokenImageError as error:
                    broken.append(str(error))
                    in_a_row += 1
                    if in_a_row == MAX_BROKEN_IMAGES:  # otherwise it would search forever
                        raise BrokenImageError(
                            f'{in_a_row} broken pairs in a row, check dataset.shards:\n  '
                            + '\n  '.join(broken[-MAX_BROKEN_IMAGES:])
                        ) from error
                    continue
            in_a_row = 0
            broken.clear()
            yield sample

    def _pairs(self, shards: list[str], epoch: int, broken: list[str]) -> Iterator[dict]:
        """An endless stream of pairs; what is left out is added to ``broken``."""
        for repeat in count():
            seed = derive_seed(self.seed, epoch, repeat)
            order = random.Random(seed).sample(shards, len(shards))
            num_pairs = 0
            shuffle = wds.detshuffle(self.shuffle_buffer, self.shuffle_buffer // 10, seed=seed)
            for raw in shuffle.run(read_shards(order, broken.append)):
                try:
                    pair = self._pair(raw)
                except (ValueError, RecursionError) as error:
                    suffix = 'txt' if raw.get('txt') else 'json'
                    broken.append(f'{_name(raw)}.{suffix}: {error}')
                    continue
                if pair['text'] and pair['img_bytes'] is not None:
                    num_pairs += 1
                    yield pair
            if not num_pairs:
                raise ValueError(
                    f'no pair of an image ({", ".join(IMAGES)}) and a caption (txt, or "caption" '
                    f'in json) in {shards[0]} and {len(shards) - 1} more shards; '
                    f'{shorten(broken[:MAX_BROKEN_IMAGES], 1000)}'
                )

    def _pair(self, raw: dict) -> dict:
        """Encoded image and clean text of a member of a shard."""
        text = raw.get('txt', b'').decode('utf-8-sig')
        if not text and 'json' in raw:
            text = Fields(decode_json(raw['json'].decode('utf-8-sig'))).text('caption', '')
        image = next((raw[suffix] for suffix in IMAGES if suffix in raw), None)
        return {'img_bytes': image, 'text': self.clean(text), 'img_path': _name(raw)}


def _name(raw: dict) -> str:
    """A pair as a path, whose last part is its key: the image's id in a store of regions."""
    return f'{raw["__url__"]}/{raw["__key__"]}'


def _find_shards(data_root: str, pattern: str) -> list[str]:
    """Shards of a pattern with braces or of a glob, in order; all must exist."""
    full_pattern = str(Path(data_root, pattern))
    if any(char in pattern for char in '*?['):
        shards = [
            str(Path(data_root, shard)) for shard in sorted(glob(pattern, root_dir=data_root))
        ]
        missing = [] if shards else [full_pattern]
    else:
        _check_count(full_pattern)
        shards = list(wds.shardlists.expand_urls(full_pattern))
        missing = [shard for shard in shards if not Path(shard).is_file()]
    if missing:
        raise FileNotFoundError(
            f'{missing[0]} does not exist (dataset.shards; {len(missing)} missing). docs/data.md '
            'says how to write shards with img2dataset.'
        )
    return shards


def _check_count(pattern: str) -> None:
    """Counts the shards of a pattern with braces before their names fill the memory."""
    ranges = re.findall(r'\{(\d+)\.\.(\d+)', pattern)
    number = math.prod(abs(int(last) - int(first)) + 1 for first, last in ranges)
    if number > _MAX_SHARDS:
        raise ValueError(
            f'{pattern} stands for {number} shards (dataset.shards), expected at most {_MAX_SHARDS}'
        )
