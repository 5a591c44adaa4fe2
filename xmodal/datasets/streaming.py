"""Streaming of image-text pairs from WebDataset tar shards."""

import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, count, islice
from pathlib import Path

import torch
import webdataset as wds
from mmcv.transforms import Compose
from mmengine.dist import get_dist_info
from torch.utils.data import IterableDataset, get_worker_info

from xmodal.datasets.seeding import derive_seed, isolated_random
from xmodal.datasets.text import clean_caption
from xmodal.datasets.transforms import BrokenImageError
from xmodal.registry import DATASETS

_IMAGES = 'jpg;jpeg;png;webp'


@DATASETS.register_module()
class WebDatasetShards(IterableDataset):
    """Pairs of ``KEY.jpg`` and ``KEY.txt`` in tar shards, as img2dataset writes them.

    An epoch shuffles the shards and then the samples in a buffer, from the seed and the epoch
    alone. Ranks and workers have shards of their own, as many samples each, so that all end an
    epoch together; who runs out begins its shards again. Training resumes at the start of an epoch
    or, by reading past what was seen, within it.

    Args:
        shards: a path with braces (``cc3m/{00000..00331}.tar``) or a glob.
        num_samples: pairs in an epoch, over all ranks.
        data_root: folder that ``shards`` is relative to.
        pipeline: transforms, as of :class:`xmodal.datasets.CaptionDataset`.
        shuffle_buffer: samples held for shuffling, a worker.
        max_words: captions are cut after so many words.
        seed: of all random choices.

    Raises:
        FileNotFoundError: when there is no such shard.
    """

    def __init__(
        self,
        shards: str,
        num_samples: int,
        data_root: str = '',
        pipeline: list[dict | Callable] = (),
        shuffle_buffer: int = 1000,
        max_words: int = 30,
        seed: int = 0,
    ) -> None:
        self.shards = _find_shards(Path(data_root, shards))
        self.num_samples, self.shuffle_buffer, self.seed = num_samples, shuffle_buffer, seed
        self.clean = partial(clean_caption, max_words=max_words)
        self.pipeline = Compose(list(pipeline))
        # Shared, so that a worker that outlives the epoch sees the next.
        self._epoch = torch.zeros((), dtype=torch.int64).share_memory_()
        self._skipped = torch.zeros((), dtype=torch.int64).share_memory_()

    def __len__(self) -> int:
        """Samples of one rank in an epoch."""
        return self.num_samples // get_dist_info()[1]

    def set_epoch(self, epoch: int) -> None:
        """Chooses the order of the next iteration."""
        self._epoch.fill_(epoch)

    def skip(self, samples: int) -> None:
        """Leaves out this rank's first ``samples`` of the next iteration."""
        self._skipped.fill_(samples)

    def __iter__(self) -> Iterator[dict]:
        rank, world_size = get_dist_info()
        worker = get_worker_info()
        place, places = (worker.id, worker.num_workers) if worker else (0, 1)
        own = self.shards[rank * places + place :: world_size * places]
        if not own:
            raise ValueError(
                f'{len(self.shards)} shards are too few for {world_size} ranks x {places} workers: '
                'every worker reads shards of its own. Use fewer workers or smaller shards.'
            )
        quota = len(self) // places + (place < len(self) % places)
        # The loader takes whole batches from the workers in turn; skipping is exact where the
        # samples seen are a multiple of the workers.
        skipped = int(self._skipped) // places
        epoch = int(self._epoch)
        raw = chain.from_iterable(self._read(own, epoch, turn) for turn in count())
        numbered = enumerate(islice(raw, skipped, quota), skipped)
        return (self._make(pair, epoch, number) for number, pair in numbered)

    def _read(self, shards: list[str], epoch: int, turn: int) -> Iterator[dict]:
        """The raw pairs of one pass over shards, shuffled."""
        seed = derive_seed(self.seed, epoch, turn)
        order = random.Random(seed).sample(shards, len(shards))
        return iter(
            wds.DataPipeline(
                wds.SimpleShardList(order),
                wds.tarfile_to_samples(),
                wds.detshuffle(self.shuffle_buffer, self.shuffle_buffer // 10, seed=seed),
                wds.map(self._pair),
                wds.select(lambda pair: pair['img_bytes'] is not None and pair['text']),
            )
        )

    def _pair(self, raw: dict) -> dict:
        """Image bytes and cleaned text of a member of a shard."""
        text = raw.get('txt', b'').decode() or json.loads(raw.get('json', b'{}')).get('caption', '')
        image = next((raw[kind] for kind in _IMAGES.split(';') if kind in raw), None)
        name = f'{raw["__url__"]}:{raw["__key__"]}'
        return {'img_bytes': image, 'text': self.clean(text or ''), 'img_path': name}

    def _make(self, pair: dict, epoch: int, number: int) -> dict:
        pair |= {'image_id': derive_seed(pair['img_path']), 'sample_index': number}
        with isolated_random(self.seed, epoch, pair['img_path']):
            try:
                return self.pipeline(pair)
            except BrokenImageError as error:
                # A grey picture keeps the batch whole; the hook counts it as skipped.
                skipped = [f'{pair["img_path"]} ({error})']
                grey = _grey_image()
                return self.pipeline({**pair, 'img_bytes': grey, 'skipped': skipped})


def _find_shards(pattern: Path) -> list[str]:
    """Shards of a braces or glob pattern, in order; all must be there."""
    if any(sign in pattern.name for sign in '*?['):
        found = sorted(map(str, pattern.parent.glob(pattern.name)))
        missing = [] if found else [str(pattern)]
    else:
        found = list(wds.shardlists.expand_urls(str(pattern)))
        missing = [shard for shard in found if not Path(shard).exists()]
    if missing:
        raise FileNotFoundError(
            f'{missing[0]} is not there (dataset.shards; {len(missing)} missing). docs/data.md '
            'says how to write shards with img2dataset.'
        )
    return found


def _grey_image() -> bytes:
    import cv2
    import numpy as np

    return cv2.imencode('.png', np.full((32, 32, 3), 127, np.uint8))[1].tobytes()
