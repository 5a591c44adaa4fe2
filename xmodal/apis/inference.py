"""Inference on images and texts with a trained model."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from mmengine.config import Config
from torch import Tensor
from tqdm import tqdm

from xmodal.apis.inputs import ImageLike, clean_texts, image_fields, require_images, require_pairs
from xmodal.apis.lock import Lock
from xmodal.apis.models import load_model, locate, method_of
from xmodal.apis.preprocessing import blank_image, image_pipeline, loader_of_images, text_cleaner
from xmodal.build_functions import find_component
from xmodal.engine.launch import read_config
from xmodal.packaged import is_config_file
from xmodal.registry import FUNCTIONS
from xmodal.structures import DataSample, Encoded, Tokens, require_unit_length
from xmodal.visualization.anchors import WordAnchors, find_position, word_anchors
from xmodal.visualization.grad_cam import grad_cam

_NONE = torch.zeros(0, dtype=torch.int64)  # no rows


class Inferencer:
    """Applies a trained model to images and texts, with the preprocessing of its test set.

    An image is a path, the bytes of a file, an image of Pillow, or RGB pixels uint8 (H, W, 3), of
    any size. Empty lists give empty results, and a text without a word is an error. Words that the
    model does not know are named in a warning. :meth:`similarity`, :meth:`match`, :meth:`heatmap`
    and :meth:`anchors` are for models that were pre-trained, or fine-tuned for retrieval or
    grounding, of which matching models have the first; :meth:`predict` is for those of other tasks.
    Threads may share an inferencer.

    Example:
        >>> inferencer = Inferencer('acerpe-shapes')  # or Inferencer('CONFIG.py', 'epoch_9.pth')
        >>> inferencer.similarity(['a.png', 'b.png'], ['a red ring above a blue disc'])

    Args:
        config: a config or a config file; its test data set defines the preprocessing of images
            and texts. Or a name of the zoo, a folder of a model or of a run, or one on the Hugging
            Face hub; see :func:`xmodal.get_model`.
        checkpoint: a file; None for the weights of the name, or for a model that needs none.
        device: device of the model.
        batch_size: images, texts, or pairs, that are in the model at once, of lists of any length.
        progress: shows a bar.

    Raises:
        ValueError: if there is no test data set, or it has no pipeline, because it reads region
            features.
    """

    def __init__(
        self,
        config: str | Path | Config,
        checkpoint: str | Path | None = None,
        device: str = 'cpu',
        batch_size: int = 64,
        progress: bool = False,
    ) -> None:
        self.given = config, checkpoint  # errors of an index name the model by them
        is_name = not isinstance(config, Config) and not is_config_file(config)
        if is_name:
            config, checkpoint = locate(config, checkpoint or True)
        self.config = config if isinstance(config, Config) else read_config(config)
        loader = loader_of_images(self.config)
        self.model = load_model(self.config, checkpoint, device)
        self.model.data_preprocessor.names_unknown_words = True
        self.pipeline = image_pipeline(loader.dataset, self.model)
        self.collate = find_component(loader.collate_fn.type, FUNCTIONS)
        self.clean_text = text_cleaner(loader.dataset)
        self.batch_size, self.progress = batch_size, progress
        self.lock = Lock()  # a tokenizer has a state while it works

    @torch.no_grad()
    def encode_images(self, images: Sequence[ImageLike]) -> Encoded:
        """Encodes B images: their tokens and embeddings.

        Raises:
            BrokenImageError: if an image cannot be read.
            TypeError: if a single image takes the place of the list.
        """
        encoded = Encoded.join([*self._encode_batches(images)])
        return encoded if len(images) else encoded.select(_NONE)

    def _encode_batches(self, images: Sequence[ImageLike]) -> Iterator[Encoded]:
        """Encodes images, batch by batch; of no image one that is blank, as models need some."""
        require_images(images)
        shown = images if len(images) else [blank_image(self.pipeline.transforms[0])]
        return map(self.encode_batch, self._batches(shown, [''] * len(shown)))

    @torch.no_grad()
    def encode_batch(self, data: dict) -> Encoded:
        """Encodes images that ``collate`` has joined from samples of the ``pipeline``."""
        return self._encode('image', self.model.data_preprocessor.prepare_images(data['inputs']))

    @torch.no_grad()
    def encode_texts(self, texts: Sequence[str]) -> Encoded:
        """Encodes T texts, those of like length together: their tokens and embeddings.

        Raises:
            TypeError: if a single text takes the place of the list.
            ValueError: if there is no word in a text.
        """
        ids, mask = self._tokenize(clean_texts(texts, self.clean_text) or [''])
        order = mask.sum(1).argsort(stable=True)
        batches = tqdm(order.split(self.batch_size), 'texts', disable=not self.progress)
        encoded = Encoded.join([self._encode_words(ids[rows], mask[rows]) for rows in batches])
        return encoded.select(order.argsort() if len(texts) else _NONE)

    def _encode_words(self, ids: Tensor, mask: Tensor) -> Encoded:
        """Encodes texts of words (T, L), padded to the longest of more texts."""
        longest = int(mask.sum(1).max())
        return self._encode('text', ids[:, :longest], mask[:, :longest])

    def _encode(self, modality: str, *inputs: Tensor) -> Encoded:
        """Encodes an ``image`` or a ``text``; of tokens alone, vectors are made here."""
        encoded = method_of(self.model, f'encode_{modality}')(*inputs)
        if isinstance(encoded, Tokens):
            pool = getattr(self.model.similarity, f'{modality}_vectors')
            encoded = Encoded(encoded, pool(encoded))
        require_unit_length(encoded.embedding, self.model)
        return encoded

    def encode(self, images: Sequence[ImageLike], texts: Sequence[str]) -> tuple[Encoded, Encoded]:
        """Encodes B images and T texts."""
        text = self.encode_texts(texts)  # wrong ones are told before the images are read
        return self.encode_images(images), text

    @torch.no_grad()
    def similarity(self, images: Sequence[ImageLike], texts: Sequence[str]) -> Tensor:
        """Returns the cosine similarity of every image and every text, (B, T).

        SAF and SGR, which have no vectors, give the sigmoid of their logit.
        """
        text = self.encode_texts(texts)
        if text.embedding is not None:  # the tokens of all images may need gigabytes
            vectors = [encoded.embedding for encoded in self._encode_batches(images)]
            return torch.cat(vectors)[: len(images)] @ text.embedding.T
        image = self.encode_images(images)
        if not (len(images) and len(texts)):
            return image.tokens.embeddings.new_zeros(len(images), len(texts))
        return self.model.similarity.to_scores(self.model.similarity(image.tokens, text.tokens))

    @torch.no_grad()
    def match(self, images: Sequence[ImageLike], texts: Sequence[str]) -> Tensor:
        """Returns the probability that an image and a text match, for all pairs, (B, T).

        It is the softmax of both ITM logits, whatever score the ITM head ranks by.
        """
        self.model.require_matching_head()
        image, text = self.encode(images, texts)
        shape = len(images), len(texts)
        pairs = torch.ones(shape, device=image.embedding.device).nonzero()
        if not len(pairs):
            return image.embedding.new_zeros(shape)
        parts = tqdm(pairs.split(self.batch_size), 'pairs', disable=not self.progress)
        logits = [self.model.match_logits(image.tokens, text.tokens, part) for part in parts]
        return torch.cat(logits).softmax(1)[:, 1].view(shape)

    def heatmap(
        self, images: Sequence[ImageLike], texts: Sequence[str], layer: int | None = None
    ) -> Tensor:
        """Returns the Grad-CAM heat map of each text on the patches of its image, (B, h, w).

        Args:
            images: B images.
            texts: B texts.
            layer: index of the fusion layer; -1 is the last one, as in Fig. 4 of ACE-RPE. None is
                the third of six, or the layer at the same relative depth: ALBEF localises with it.

        Raises:
            ValueError: if the numbers of images and texts differ, or the model has no such layer.
        """
        require_pairs(images, texts)
        image, text = self.encode(images, texts)
        if not len(images):
            return image.embedding.new_zeros(0, *(image.tokens.grid_size or (0, 0)))
        batches = torch.arange(len(images)).split(self.batch_size)
        pairs = [(image.tokens.select(rows), text.tokens.select(rows)) for rows in batches]
        return torch.cat([grad_cam(self.model, *pair, layer)[1] for pair in pairs])

    @torch.no_grad()
    def anchors(self, image: ImageLike, text: str) -> list[WordAnchors]:
        """Returns the words of a text, each with the patches that are its anchors (Eq. 5).

        Words are word pieces, in the order of the text. [SEP] counts as one, [CLS] does not: it has
        no place. :func:`xmodal.visualization.draw_anchors` draws them.

        Raises:
            ValueError: if the model has no anchors, because its position is not ACE-RPE.
        """
        ids, mask = self._tokenize(clean_texts([text], self.clean_text))
        tokens = self.encode_images([image]).tokens, self.model.encode_text(ids, mask).tokens
        words = word_anchors(self.model, *tokens, self.model.data_preprocessor.words(ids[0]))
        if not words:
            position = find_position(self.model)
            raise ValueError(
                f'{type(self.model).__name__} has no anchors: model.backbone.position is '
                f"{position and type(position).__name__}, expected type='AnchorRelativePosition'"
            )
        return words[1:]

    @torch.no_grad()
    def predict(
        self, images: Sequence[ImageLike | Sequence[ImageLike]], texts: Sequence[str]
    ) -> list[DataSample]:
        """Predicts the answer or the class of each image with its question or statement.

        Args:
            images: B images; lists of images for a model that takes several at once, as for NLVR2.
                A model of regions takes any path whose stem is an image id of its region store.
            texts: B questions or statements.

        Returns:
            B samples. For VQA ``predicted`` is the answer, and ``top_answers`` has the best answers
            and their probabilities. For classification ``predicted`` is the index of the class, and
            ``probabilities`` is (C,), in the order of ``ENTAILMENT_CLASSES`` or
            ``REASONING_CLASSES``.

        Raises:
            BrokenImageError: if an image cannot be read.
            ValueError: if images and texts differ in number, or the model has no prediction mode.
        """
        require_pairs(images, texts)
        samples = []
        for batch in self._batches(images, clean_texts(texts, self.clean_text)):
            with self.lock:
                prepared = self.model.data_preprocessor(batch, False)
            samples += self.model(**prepared, mode='predict')
        return samples

    def _tokenize(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Tokenises clean texts: ``input_ids`` and ``attention_mask``."""
        with self.lock:
            return self.model.data_preprocessor.tokenize(texts)

    def _batches(
        self, images: Sequence[ImageLike | Sequence[ImageLike]], texts: Sequence[str]
    ) -> Iterator[dict]:
        """What the pipeline makes of images and texts, in batches that are joined."""
        loading, samples = self.pipeline.transforms[0], []
        pairs = zip(images, tqdm(texts, 'images', disable=not self.progress), strict=True)
        for index, (image, text) in enumerate(pairs):
            ids = {'image_id': index, 'sample_index': index, 'text': text}
            samples.append(self.pipeline(ids | image_fields(image, f'images[{index}]', loading)))
            if len(samples) == self.batch_size or index == len(texts) - 1:
                yield self.collate(samples)
                samples = []
