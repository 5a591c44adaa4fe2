"""Streaming of image-text pairs from WebDataset tar shards."""

import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from glob import glob
from itertools import count, islice
from pathlib import Path

import torch
import webdataset as wds
from mmengine.dist import get_dist_info
from torch.utils.data import IterableDataset, get_worker_info

from xmodal.datasets.base import MOST_BROKEN
from xmodal.datasets.seeding import derive_seed, isolated_random
from xmodal.datasets.text import clean_caption
from xmodal.datasets.transforms import BrokenImageError, build_pipeline
from xmodal.registry import DATASETS

_IMAGES = ('jpg', 'jpeg', 'png', 'webp')


@DATASETS.register_module()
class WebDatasetShards(IterableDataset):
    """Pairs of ``KEY.jpg`` and ``KEY.txt`` in tar shards, as img2dataset writes them.

    An epoch shuffles the shards, deals them out to ranks and workers, and shuffles the samples of
    each in a buffer, from the seed and the epoch alone. A worker that is through with its shards
    begins again, so the stream has no end: the training loop takes ``len(loader)`` batches an
    epoch, on every rank the same number. Where all workers get equally many samples that is every
    sample once; else the fullest leave out what they could not show, other samples each epoch.
    Training resumes exactly at the start of an epoch; within one it reads past what was seen
    without decoding it, which is exact where every worker had handed out equally many batches and
    no image was broken.

    Pairs whose caption is empty after cleaning are passed over.

    Args:
        shards: a path with braces (``cc3m/{00000..00331}.tar``) or a glob, or several.
        num_samples: pairs in an epoch, over all ranks.
        data_root: folder that ``shards`` is relative to.
        pipeline: transforms, as of :class:`xmodal.datasets.CaptionDataset`.
        shuffle_buffer: samples held for shuffling, a worker.
        max_words: captions are cut after so many words.
        seed: of all random choices.

    Raises:
        FileNotFoundError: when there is no such shard.
        ValueError: when there are fewer shards than ranks x workers, on the first iteration.
        BrokenImageError: after twenty broken images in a row, while it is read.
    """

    def __init__(
        self,
        shards: str | list[str],
        num_samples: int,
        data_root: str = '',
        pipeline: list[dict | Callable] = (),
        shuffle_buffer: int = 1000,
        max_words: int = 30,
        seed: int = 0,
    ) -> None:
        patterns = [shards] if isinstance(shards, str) else shards
        self.shards = [shard for p in patterns for shard in _find_shards(data_root, p)]
        self.num_samples, self.shuffle_buffer, self.seed = num_samples, shuffle_buffer, seed
        self.clean = partial(clean_caption, max_words=max_words)
        self.pipeline = build_pipeline(pipeline)
        # Asked here, since a worker that is not forked does not know its rank.
        self._rank, self._world_size = get_dist_info()
        # Shared, so that a worker that outlives the epoch sees the next.
        self._epoch = torch.zeros((), dtype=torch.int64).share_memory_()
        self._skipped = torch.zeros((), dtype=torch.int64).share_memory_()

    def __len__(self) -> int:
        """Samples of one rank in an epoch."""
        return self.num_samples // self._world_size

    def set_epoch(self, epoch: int) -> None:
        """Chooses the order of the next iteration."""
        self._epoch.fill_(epoch)

    def skip(self, samples: int) -> None:
        """Leaves out this rank's first ``samples`` of the next iteration."""
        self._skipped.fill_(samples)

    def __iter__(self) -> Iterator[dict]:
        worker = get_worker_info()
        place, places = (worker.id, worker.num_workers) if worker else (0, 1)
        epoch = int(self._epoch)
        order = random.Random(derive_seed(self.seed, epoch)).sample(self.shards, len(self.shards))
        own = order[self._rank * places + place :: self._world_size * places]
        if not own:
            raise ValueError(
                f'{len(self.shards)} shard(s) are too few for {self._world_size} rank(s) x '
                f'{places} worker(s): each reads shards of its own. Use fewer workers '
                '(train_dataloader.num_workers) or write smaller shards.'
            )
        return self._samples(own, epoch, int(self._skipped) // places)

    def _samples(self, shards: list[str], epoch: int, skipped: int) -> Iterator[dict]:
        """Samples without end; one that is broken is replaced by the next."""
        broken: list[str] = []
        for number, pair in enumerate(islice(self._pairs(shards, epoch, broken), skipped, None)):
            pair |= {
                'image_id': derive_seed(pair['img_path']),
                'sample_index': skipped + number,
                'skipped': list(broken),
            }
            with isolated_random(self.seed, epoch, pair['img_path']):
                try:
                    sample = self.pipeline(pair)
                except BrokenImageError as error:
                    broken.append(str(error))
                    if len(broken) >= MOST_BROKEN:  # else it would look for one for ever
                        raise BrokenImageError(
                            f'{len(broken)} broken pairs in a row, check dataset.shards:\n  '
                            + '\n  '.join(broken[-MOST_BROKEN:])
                        ) from error
                    continue
            broken.clear()
            yield sample

    def _pairs(self, shards: list[str], epoch: int, broken: list[str]) -> Iterator[dict]:
        """Raw pairs without end; a shard that breaks off is noted in ``broken``."""

        def note(error: Exception) -> bool:
            broken.append(f'shard: {error}')
            return True

        for turn in count():
            seed = derive_seed(self.seed, epoch, turn)
            order = random.Random(seed).sample(shards, len(shards))
            found = 0
            for raw in wds.DataPipeline(
                wds.SimpleShardList(order),
                wds.tarfile_to_samples(handler=note),
                wds.detshuffle(self.shuffle_buffer, self.shuffle_buffer // 10, seed=seed),
            ):
                try:
                    pair = self._pair(raw)
                except ValueError as error:
                    broken.append(f'{raw["__url__"]}:{raw["__key__"]}.json: {error}')
                    continue
                if pair['text'] and pair['img_bytes'] is not None:
                    found += 1
                    yield pair
            if not found:
                raise ValueError(
                    f'no pair of an image ({", ".join(_IMAGES)}) and a caption (txt, or "caption" '
                    f'in json) in {shards[0]} and {len(shards) - 1} more shards; {broken}'
                )

    def _pair(self, raw: dict) -> dict:
        """Image bytes and clean text of a member of a shard."""
        text = raw.get('txt', b'').decode(errors='replace')
        if not text and 'json' in raw:
            text = _read_caption(raw['json'])
        image = next((raw[kind] for kind in _IMAGES if kind in raw), None)
        name = f'{raw["__url__"]}:{raw["__key__"]}'
        return {'img_bytes': image, 'text': self.clean(text), 'img_path': name}


def _read_caption(content: bytes) -> str:
    """The caption in a pair's JSON, '' where it has none.

    Raises:
        ValueError: when the JSON is of another layout.
    """
    item = json.loads(content)
    caption = (item.get('caption') or '') if isinstance(item, dict) else None
    if not isinstance(caption, str):
        raise ValueError(f'it is {str(item)[:40]}, expected {{"caption": "text", …}}')
    return caption


def _find_shards(data_root: str, pattern: str) -> list[str]:
    """Shards of a braces or glob pattern, in order; all must be there."""
    whole = str(Path(data_root, pattern))
    if any(sign in pattern for sign in '*?['):
        found = [str(Path(data_root, shard)) for shard in sorted(glob(pattern, root_dir=data_root))]
        missing = [] if found else [whole]
    else:
        found = list(wds.shardlists.expand_urls(whole))
        missing = [shard for shard in found if not Path(shard).exists()]
    if missing:
        raise FileNotFoundError(
            f'{missing[0]} is not there (dataset.shards; {len(missing)} missing). docs/data.md '
            'says how to write shards with img2dataset.'
        )
    return found
