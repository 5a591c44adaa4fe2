"""Whether a model is the one that an index was made with."""

import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch

from xmodal.datasets.transforms import LoadRegions
from xmodal.files import atomic_write
from xmodal.hashing import file_hash
from xmodal.search.manifest import read_manifest

PROBES = 'probes.npz'
_SAME = 0.999  # cosine of a probe above which only rounding differs, as in half precision


class ModelIdentity:
    """What tells a model from others: its fingerprint, and its vectors of a text and of an image.

    A fingerprint knows weights and preprocessing. The vectors know the rest, such as a pooling or
    the number of heads.

    Args:
        inferencer: of the model.

    Attributes:
        fingerprint: see :func:`fingerprint`.
        probes: vectors by what they are of, (d,); that of an image after :meth:`probe_image`.

    Raises:
        ValueError: when the model compares tokens and has no vectors.
    """

    def __init__(self, inferencer: Any) -> None:
        vector = inferencer.encode_texts(['a']).embedding
        if vector is None:
            raise ValueError(
                f'{type(inferencer.model).__name__} compares tokens and gives no vectors: search '
                'needs a model with ITC or a dual encoder'
            )
        self.inferencer, self.fingerprint = inferencer, fingerprint(inferencer)
        self.probes = {'text': vector[0].float().cpu().numpy()}

    def probe_image(self) -> None:
        """Adds the vector of an image, which only new images need; regions have none."""
        if not isinstance(self.inferencer.pipeline.transforms[0], LoadRegions):
            image = (np.arange(64 * 64 * 3) * 7 % 251).astype(np.uint8).reshape(64, 64, 3)
            vector = self.inferencer.encode_images([image]).embedding
            self.probes['image'] = vector[0].float().cpu().numpy()

    def require(self, folder: Path) -> None:
        """Refuses an index that another model has made.

        Raises:
            ValueError: names both models.
        """
        manifest = read_manifest(folder)
        found, own = manifest['fingerprint'], self.fingerprint
        if found not in (own, own[:16]):  # earlier versions did not write the normalisation,
            own = fingerprint(self.inferencer, is_sorted=False)  # or did not sort keys
        same = ''
        if found in (own, own[:16]):
            other = self._other_probe(folder)
            if other is None:
                return
            same = f', with the same weights and another vector of the same {other}'
        made = manifest.get('config', 'the model of a script'), manifest.get('checkpoint')
        raise ValueError(
            f'{folder} was made with {name_of(*made)} ({found}), and the model given now is '
            f'{name_of(*self.inferencer.given)} ({self.fingerprint}){same}: give the former '
            '(--config, --checkpoint), or another --index for this model'
        )

    def _other_probe(self, folder: Path) -> str | None:
        """What the model has another vector of; None for nothing, as in indices without probes."""
        if not (folder / PROBES).is_file():
            return None
        with np.load(folder / PROBES) as kept:
            for name, own in self.probes.items():
                former = kept.get(name, own)
                if own @ former < _SAME * np.linalg.norm(own) * np.linalg.norm(former):
                    return name
        return None

    def write_probes(self, folder: Path) -> None:
        """Writes the vectors for later models, unless they are there."""
        if not (folder / PROBES).is_file():
            with atomic_write(folder / PROBES) as path, open(path, 'wb') as output:
                np.savez(output, **self.probes)


def fingerprint(inferencer: Any, is_sorted: bool = True) -> str:
    """Identifies the weights and the preprocessing of a model: its vectors depend on both.

    Mean and standard deviation, which normalise images, are no part of a state dict.

    Args:
        inferencer: of the model.
        is_sorted: False for what earlier versions wrote. It depends on the order of the keys of an
            extractor's config, which is another one in the folder of a run or of an exported model.
    """
    transforms = [
        (type(t).__name__, _settings(vars(t), is_sorted)) for t in inferencer.pipeline.transforms
    ]
    described = re.sub(r' at 0x[0-9a-f]+', '', repr(transforms))  # places in memory
    digest = hashlib.sha256(described.encode())
    for name, value in sorted(inferencer.model.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.cpu().contiguous().flatten().view(torch.uint8).numpy())
    buffers = dict(inferencer.model.data_preprocessor.named_buffers())
    constants = [buffers[name].flatten().tolist() for name in ('mean', 'std') if name in buffers]
    # Indices of earlier versions have the first 16 characters alone.
    normalization = hashlib.sha256(repr(constants).encode()).hexdigest()[:8] if constants else ''
    return digest.hexdigest()[:16] + normalization


def _settings(value: Any, is_sorted: bool) -> Any:
    """The attributes of a transform: of a file its content, which says more than its place.

    The extractor that its first image builds is left out.
    """
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if not isinstance(v, torch.nn.Module)}
        names = sorted(kept) if is_sorted else kept
        return {name: _settings(kept[name], is_sorted) for name in names}
    if isinstance(value, list):
        return [_settings(item, is_sorted) for item in value]
    if isinstance(value, tuple):
        return tuple(_settings(item, is_sorted) for item in value)
    return file_hash(Path(value)) if isinstance(value, str) and Path(value).is_file() else value


def name_of(config: Any, checkpoint: Any) -> str:
    """The name of a model, or its config and its checkpoint."""
    config = getattr(config, 'filename', config) or 'a config without a file'
    return f'{config} with {checkpoint}' if checkpoint else str(config)
