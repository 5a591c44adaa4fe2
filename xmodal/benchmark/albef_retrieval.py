"""``evaluation`` of ALBEF's public Retrieval.py, over images that are encoded already."""

import contextlib
import io
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace

import torch
from torch import Tensor, nn

from xmodal.errors import ConfigError
from xmodal.evaluation.retrieval import Gallery
from xmodal.structures import PackedTexts

# What Retrieval.py imports for its training, and its tokenizer, in whose place ids are given.
_UNUSED = {
    'ruamel_yaml': (),
    'models.tokenization_bert': ('BertTokenizer',),
    'dataset': ('create_dataset', 'create_sampler', 'create_loader'),
    'scheduler': ('create_scheduler',),
    'optim': ('create_optimizer',),
}


class PublicRetrieval:
    """Its two-stage retrieval with its model.

    Args:
        folder: a checkout of the public code, which :func:`albef_peer.load` has read.
        peer: its model of pre-training.
    """

    def __init__(self, folder: Path, peer: nn.Module) -> None:
        self.evaluation = _load(folder)
        self.model = nn.Module()
        self.model.visual_encoder = nn.Identity()
        self.model.text_encoder = peer.text_encoder.bert
        for name in ('vision_proj', 'text_proj', 'itm_head'):
            setattr(self.model, name, getattr(peer, name))

    def score(
        self, images: Tensor, texts: PackedTexts, text_to_image: Tensor, topk: int
    ) -> Gallery:
        """The scores of the k best of each query by ITM; all others have −100.

        Args:
            images: encoded, (I, 1 + M, D).
            texts: word pieces.
            text_to_image: row of the image of each text, (T,) int64.
            topk: k.
        """
        loader = _Loader(images, len(texts.lengths))
        with contextlib.redirect_stdout(io.StringIO()):
            i2t_scores, t2i_scores = self.evaluation(
                self.model, loader, _Tokenizer(texts), images.device, {'k_test': topk}
            )
        t2i_scores = torch.from_numpy(t2i_scores).T
        return Gallery(torch.from_numpy(i2t_scores), text_to_image, t2i_scores=t2i_scores)


class _Loader:
    """Encoded images in the place of a data loader; a text is its row."""

    def __init__(self, images: Tensor, num_texts: int) -> None:
        self.images = images
        self.dataset = SimpleNamespace(text=range(num_texts), image=range(len(images)))

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return zip(self.images.split(1), torch.arange(len(self.images)).split(1), strict=True)


class _Tokenizer:
    """Gives the word pieces of rows of texts, padded as Retrieval.py asks for it."""

    def __init__(self, texts: PackedTexts) -> None:
        self.texts = texts

    def __call__(self, rows: range, max_length: int, **options: object) -> '_Tokenizer':
        input_ids, mask = self.texts.select(torch.tensor(rows)).pad()
        padding = (0, max_length - input_ids.shape[1])
        self.input_ids = nn.functional.pad(input_ids, padding)
        self.attention_mask = nn.functional.pad(mask.long(), padding)
        return self

    def to(self, device: torch.device) -> '_Tokenizer':
        self.input_ids = self.input_ids.to(device)
        self.attention_mask = self.attention_mask.to(device)
        return self


def _load(folder: Path) -> Callable:
    """The function, without what its file imports for training.

    Raises:
        ConfigError: if the folder has no such code.
    """
    if not (folder / 'Retrieval.py').is_file():
        raise ConfigError(f'--peer {folder} has no Retrieval.py: expected ALBEF')
    hidden = {name: sys.modules.get(name) for name in _UNUSED}
    for name, attributes in _UNUSED.items():
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(dict.fromkeys(attributes))
    try:
        retrieval = import_module('Retrieval')
    finally:
        for name, module in hidden.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
    retrieval.args = Namespace(distributed=False)
    return retrieval.evaluation
