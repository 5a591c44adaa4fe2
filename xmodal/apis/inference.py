"""From a config and a checkpoint to answers about one's own pictures."""

from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from pathlib import Path

import torch
from mmengine.config import Config, ConfigDict
from torch import Tensor, nn

from xmodal.datasets.text import clean_caption
from xmodal.datasets.transforms import build_pipeline
from xmodal.engine.checkpoint import load_weights
from xmodal.engine.launch import read_config
from xmodal.registry import DATASETS, FUNCTIONS, MODELS, register_all
from xmodal.structures import DataSample, Encoded
from xmodal.visualization.grad_cam import grad_cam

Picture = str | Path


def load_model(
    config: str | Path | Config, checkpoint: str | Path, device: str = 'cpu'
) -> nn.Module:
    """Builds a config's model with a checkpoint's weights, ready for evaluation.

    Args:
        config: a config, or its file.
        checkpoint: a checkpoint of a run, or converted weights.
        device: where the model goes.

    Raises:
        FileNotFoundError: when a file is missing.
        ValueError: when the checkpoint's weights do not belong to the config's model.
    """
    register_all()
    config = config if isinstance(config, Config) else read_config(config)
    model = MODELS.build(config.model)
    load_weights(model, checkpoint)
    return model.to(device).eval()


class Inferencer:
    """What a trained model says of pictures and texts, read as the config's test set reads them.

    :meth:`similarity`, :meth:`match` and :meth:`locate` are for a model that was pre-trained or
    fine-tuned for retrieval or grounding, :meth:`predict` for one fine-tuned for another task.

    Example:
        >>> inferencer = Inferencer('configs/acerpe/pretrain_shapes.py', 'epoch_9.pth')
        >>> inferencer.similarity(['a.png', 'b.png'], ['a red ring above a blue disc'])

    Args:
        config: a config, or its file; its test data set says how pictures and texts are prepared.
        checkpoint: a checkpoint file.
        device: where to compute.

    Raises:
        ValueError: when the config's test set has no pipeline, since it reads computed features.
    """

    def __init__(
        self, config: str | Path | Config, checkpoint: str | Path, device: str = 'cpu'
    ) -> None:
        config = config if isinstance(config, Config) else read_config(config)
        loader = config.test_dataloader
        if 'pipeline' not in loader.dataset:
            raise ValueError(
                f'{config.filename}: test_dataloader.dataset is a {loader.dataset.type} without a '
                'pipeline, which reads computed features and no pictures: use tools/test.py'
            )
        self.model = load_model(config, checkpoint, device)
        *transforms, pack = loader.dataset.pipeline
        pack = {key: value for key, value in pack.items() if key != 'fields'}  # of annotations
        self.pipeline = build_pipeline([*transforms, pack])
        self.collate = FUNCTIONS.get(loader.collate_fn.type)
        self.read_text = _reader_of_texts(loader.dataset)

    @torch.no_grad()
    def encode_images(self, images: Sequence[Picture]) -> Encoded:
        """Tokens and vectors of B picture files, for an index of one's own.

        Raises:
            BrokenImageError: when a picture can't be read.
        """
        return self.model.encode_image(self._prepare(images, [''] * len(images))['inputs'].images)

    @torch.no_grad()
    def encode_texts(self, texts: Sequence[str]) -> Encoded:
        """Tokens and vectors of T texts."""
        texts = [self.read_text(text) for text in texts]
        return self.model.encode_text(*self.model.data_preprocessor.tokenize(texts))

    def encode(self, images: Sequence[Picture], texts: Sequence[str]) -> tuple[Encoded, Encoded]:
        """Picture files to B encoded images, and texts to T encoded texts."""
        return self.encode_images(images), self.encode_texts(texts)

    def similarity(self, images: Sequence[Picture], texts: Sequence[str]) -> Tensor:
        """Cosine of every picture with every text, (B, T)."""
        image, text = self.encode(images, texts)
        return image.embedding @ text.embedding.T

    @torch.no_grad()
    def match(self, images: Sequence[Picture], texts: Sequence[str]) -> Tensor:
        """Probability that each picture and each text match, by the fusion encoder, (B, T)."""
        image, text = self.encode(images, texts)
        shape = len(images), len(texts)
        pairs = torch.ones(shape, device=image.embedding.device).nonzero()
        return self.model.match(image.tokens, text.tokens, pairs).sigmoid().view(shape)

    def relate(self, images: Sequence[Picture], texts: Sequence[str]) -> Tensor:
        """Where each picture shows what its text says, (B, h, w): Grad-CAM on the patches.

        Raises:
            ValueError: when there are not as many pictures as texts.
        """
        _require_pairs(images, texts)
        image, text = self.encode(images, texts)
        return grad_cam(self.model, image.tokens, text.tokens)[1]

    @torch.no_grad()
    def predict(
        self, images: Sequence[Picture | Sequence[Picture]], texts: Sequence[str]
    ) -> list[DataSample]:
        """What a model says of each picture, or several pictures, with its question or statement.

        Args:
            images: B files; lists of files for a model that reads several, as NLVR2's. A model of
                region features takes any path whose stem is an image's id in the config's store.
            texts: B questions or statements.

        Returns:
            B samples with ``predicted``: the answer, with ``top_answers``, the best and their
            probabilities; or the class, with ``probabilities`` (C,), classes in the order of
            ``ENTAILMENT_CLASSES`` and ``REASONING_CLASSES``.

        Raises:
            BrokenImageError: when a picture can't be read.
            ValueError: when there are not as many pictures as texts, or the model predicts nothing.
        """
        _require_pairs(images, texts)
        batch = self._prepare(images, [self.read_text(text) for text in texts])
        return self.model(**batch, mode='predict')

    def _prepare(self, images: Sequence[Picture | Sequence[Picture]], texts: Sequence[str]) -> dict:
        """The model's ``inputs`` and ``data_samples``."""
        samples = []
        for index, (image, text) in enumerate(zip(images, texts, strict=True)):
            results = {'image_id': index, 'sample_index': index, 'text': text}
            if isinstance(image, Picture):
                results['img_path'] = str(image)
            else:
                results['img_paths'] = [str(path) for path in image]
                results['img_path'] = results['img_paths'][0]
            samples.append(self.pipeline(results))
        return self.model.data_preprocessor(self.collate(samples), False)


def _require_pairs(images: Sequence, texts: Sequence) -> None:
    if len(images) != len(texts):
        raise ValueError(f'{len(images)} pictures and {len(texts)} texts are no pairs')


def _reader_of_texts(dataset: ConfigDict) -> Callable[[str], str]:
    """How a data set reads texts: cleaned and cut after so many words, or as they are."""
    if 'max_words' in dataset:
        return partial(clean_caption, max_words=dataset.max_words)
    for base in DATASETS.get(dataset.type).__mro__:
        if limit := signature(base.__init__).parameters.get('max_words'):
            return partial(clean_caption, max_words=limit.default)
    return clean_caption
