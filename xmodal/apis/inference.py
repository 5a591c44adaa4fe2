"""Inference on image files and texts with a trained model."""

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
from xmodal.visualization.anchors import WordAnchors, find_position, word_anchors
from xmodal.visualization.grad_cam import grad_cam

ImagePath = str | Path


def load_model(
    config: str | Path | Config, checkpoint: str | Path, device: str = 'cpu'
) -> nn.Module:
    """Builds the model of a config with the weights of a checkpoint, in eval mode.

    Args:
        config: a config or a config file.
        checkpoint: checkpoint file of a run, or converted weights.
        device: device of the model.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if the weights do not fit the model of the config.
    """
    register_all()
    config = config if isinstance(config, Config) else read_config(config)
    model = MODELS.build(config.model)
    load_weights(model, checkpoint)
    return model.to(device).eval()


class Inferencer:
    """Applies a trained model to image files and texts, with the preprocessing of its test set.

    :meth:`similarity`, :meth:`match`, :meth:`heatmap` and :meth:`anchors` are for models that were
    pre-trained, or fine-tuned for retrieval or grounding; :meth:`predict` is for models of the
    other tasks. Several threads may share an inferencer.

    Example:
        >>> inferencer = Inferencer('configs/acerpe/pretrain_shapes.py', 'epoch_9.pth')
        >>> inferencer.similarity(['a.png', 'b.png'], ['a red ring above a blue disc'])

    Args:
        config: a config or a config file; its test data set defines the preprocessing of images
            and texts.
        checkpoint: a checkpoint file.
        device: device of the model.

    Raises:
        ValueError: if the test data set of the config has no pipeline, because it reads
            precomputed region features.
    """

    def __init__(
        self, config: str | Path | Config, checkpoint: str | Path, device: str = 'cpu'
    ) -> None:
        config = config if isinstance(config, Config) else read_config(config)
        loader = config.test_dataloader
        if 'pipeline' not in loader.dataset:
            raise ValueError(
                f'{config.filename}: test_dataloader.dataset is a {loader.dataset.type} without a '
                'pipeline: it reads precomputed features, not image files. Use tools/test.py'
            )
        self.model = load_model(config, checkpoint, device)
        *transforms, pack = loader.dataset.pipeline
        pack = {key: value for key, value in pack.items() if key != 'fields'}  # annotations
        self.pipeline = build_pipeline([*transforms, pack])
        self.collate = FUNCTIONS.get(loader.collate_fn.type)
        self.clean_text = _text_cleaner(loader.dataset)

    @torch.no_grad()
    def encode_images(self, images: Sequence[ImagePath]) -> Encoded:
        """Encodes B image files: their tokens and embeddings.

        Raises:
            BrokenImageError: if an image cannot be read.
            TypeError: if a single path takes the place of the list.
            ValueError: if there is no image.
        """
        _require_list('images', images)
        return self.model.encode_image(self._prepare(images, [''] * len(images))['inputs'].images)

    @torch.no_grad()
    def encode_texts(self, texts: Sequence[str]) -> Encoded:
        """Encodes T texts: their tokens and embeddings.

        Raises:
            TypeError: if a single text takes the place of the list.
            ValueError: if there is no text.
        """
        _require_list('texts', texts)
        return self.model.encode_text(*self._tokenize(texts))

    def encode(self, images: Sequence[ImagePath], texts: Sequence[str]) -> tuple[Encoded, Encoded]:
        """Encodes B image files and T texts."""
        return self.encode_images(images), self.encode_texts(texts)

    def similarity(self, images: Sequence[ImagePath], texts: Sequence[str]) -> Tensor:
        """Returns the cosine similarity of every image and every text, (B, T)."""
        image, text = self.encode(images, texts)
        return image.embedding @ text.embedding.T

    @torch.no_grad()
    def match(self, images: Sequence[ImagePath], texts: Sequence[str]) -> Tensor:
        """Returns the probability that an image and a text match, for all pairs, (B, T).

        It is the softmax of both ITM logits, whatever score the ITM head ranks by.
        """
        image, text = self.encode(images, texts)
        shape = len(images), len(texts)
        pairs = torch.ones(shape, device=image.embedding.device).nonzero()
        logits = self.model.match_logits(image.tokens, text.tokens, pairs)
        return logits.softmax(1)[:, 1].view(shape)

    def heatmap(
        self, images: Sequence[ImagePath], texts: Sequence[str], layer: int | None = None
    ) -> Tensor:
        """Returns the Grad-CAM heat map of each text on the patches of its image, (B, h, w).

        Args:
            images: B image files.
            texts: B texts.
            layer: index of the fusion layer; -1 is the last one, as in Fig. 4 of ACE-RPE. None is
                the third of six, or the layer at the same relative depth: ALBEF localises with it.

        Raises:
            ValueError: if the numbers of images and texts differ, or the model has no such layer.
        """
        _require_pairs(images, texts)
        image, text = self.encode(images, texts)
        return grad_cam(self.model, image.tokens, text.tokens, layer)[1]

    @torch.no_grad()
    def anchors(self, image: ImagePath, text: str) -> list[WordAnchors]:
        """Returns the words of a text, each with the patches that are its anchors (Eq. 5).

        Words are word pieces, in the order of the text. [SEP] counts as one, [CLS] does not: it has
        no place. :func:`xmodal.visualization.draw_anchors` draws them.

        Raises:
            ValueError: if the model has no anchors, because its position is not ACE-RPE.
        """
        ids, mask = self._tokenize([text])
        tokens = self.encode_images([image]).tokens, self.model.encode_text(ids, mask).tokens
        words = word_anchors(self.model, *tokens, self.model.data_preprocessor.words(ids[0]))
        if not words:
            position = find_position(self.model)
            raise ValueError(
                f'{type(self.model).__name__} has no anchors: model.backbone.position is '
                f"{position and type(position).__name__}, expected type='ace_rpe'"
            )
        return words[1:]

    @torch.no_grad()
    def predict(
        self, images: Sequence[ImagePath | Sequence[ImagePath]], texts: Sequence[str]
    ) -> list[DataSample]:
        """Predicts the answer or the class of each image with its question or statement.

        Args:
            images: B image files; lists of files for a model that takes several images at once,
                such as those of NLVR2. A model of region features takes any path whose stem is an
                image id of the region store in the config.
            texts: B questions or statements.

        Returns:
            B samples. For VQA ``predicted`` is the answer, and ``top_answers`` has the best answers
            and their probabilities. For classification ``predicted`` is the index of the class, and
            ``probabilities`` is (C,), in the order of ``ENTAILMENT_CLASSES`` or
            ``REASONING_CLASSES``.

        Raises:
            BrokenImageError: if an image cannot be read.
            ValueError: if the numbers of images and texts differ, or the model has no prediction
                mode.
        """
        _require_pairs(images, texts)
        batch = self._prepare(images, [self.clean_text(text) for text in texts])
        return self.model(**batch, mode='predict')

    def _tokenize(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Cleans and tokenises texts: ``input_ids`` and ``attention_mask``."""
        return self.model.data_preprocessor.tokenize([self.clean_text(text) for text in texts])

    def _prepare(
        self, images: Sequence[ImagePath | Sequence[ImagePath]], texts: Sequence[str]
    ) -> dict:
        """Returns the ``inputs`` and ``data_samples`` of the model."""
        samples = []
        for index, (image, text) in enumerate(zip(images, texts, strict=True)):
            results = {'image_id': index, 'sample_index': index, 'text': text}
            if isinstance(image, ImagePath):
                results['img_path'] = str(image)
            else:
                results['img_paths'] = [str(path) for path in image]
                results['img_path'] = results['img_paths'][0]
            samples.append(self.pipeline(results))
        return self.model.data_preprocessor(self.collate(samples), False)


def _require_list(name: str, values: Sequence) -> None:
    """Refuses one text or path, whose letters would pass as many of them, and no value at all."""
    if isinstance(values, ImagePath):
        raise TypeError(f'{name}={values!r}, expected a list: {name}=[{values!r}]')
    if not len(values):
        raise ValueError(f'{name} is empty, expected a list with at least one')


def _require_pairs(images: Sequence, texts: Sequence) -> None:
    _require_list('images', images)
    _require_list('texts', texts)
    if len(images) != len(texts):
        raise ValueError(
            f'got {len(images)} images and {len(texts)} texts, expected one text for each image'
        )


def _text_cleaner(dataset: ConfigDict) -> Callable[[str], str]:
    """Returns the function that cleans texts as a data set does, with its limit of words."""
    if 'max_words' in dataset:
        return partial(clean_caption, max_words=dataset.max_words)
    for base in DATASETS.get(dataset.type).__mro__:
        if limit := signature(base.__init__).parameters.get('max_words'):
            return partial(clean_caption, max_words=limit.default)
    return clean_caption
