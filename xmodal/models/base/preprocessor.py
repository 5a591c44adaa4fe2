"""From data samples to the tensors a model takes."""

import logging
from hashlib import blake2b
from pathlib import Path

import torch
from mmengine.logging import print_log
from mmengine.model import BaseDataPreprocessor
from tokenizers.processors import TemplateProcessing
from torch import Tensor, nn
from transformers import BertTokenizer, PreTrainedTokenizerBase, RobertaTokenizer

from xmodal.registry import MODELS
from xmodal.structures import DataSample, ImageTextBatch

FAMILIES = {'bert': BertTokenizer, 'roberta': RobertaTokenizer}


def build_tokenizer(
    pretrained: str, add_sep: bool = True, family: str = 'bert'
) -> PreTrainedTokenizerBase:
    """Builds a tokenizer.

    Args:
        pretrained: a vocabulary file of BERT's (``vocab.txt``), a directory, or a name on the hub.
        add_sep: end a text with [SEP]. ALBEF's released weights were trained without it.
        family: 'bert', or 'roberta' for GPT-2's byte pairs, which data2vec 2.0 reads.

    Raises:
        FileNotFoundError: when there is no such file and no such model.
        ValueError: for another family.
    """
    if family not in FAMILIES:
        raise ValueError(
            f"data_preprocessor.tokenizer.family='{family}', expected one of {sorted(FAMILIES)}"
        )
    path = Path(pretrained)
    if path.is_file():
        vocabulary = {word: i for i, word in enumerate(path.read_text('utf-8-sig').splitlines())}
        tokenizer = BertTokenizer(vocab=vocabulary)
    else:
        try:
            tokenizer = FAMILIES[family].from_pretrained(pretrained)
        except OSError as error:
            raise FileNotFoundError(
                f"data_preprocessor.tokenizer.pretrained='{pretrained}' is neither a vocabulary "
                f'file, nor a directory with one, nor reachable on the hub: {error}\nFor the '
                'embedded world run `python tools/make_shapes.py --out data/shapes`; for real text '
                'put bert-base-uncased (its vocab.txt is enough) where the config says.'
            ) from error
    if not add_sep:
        tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
            single='[CLS] $A', special_tokens=[('[CLS]', tokenizer.cls_token_id)]
        )
    return tokenizer


def check_vocabulary(words: int, text_encoder: nn.Module) -> None:
    """Compares the number of words of the tokenizer with the text encoder's.

    Raises:
        ValueError: when the tokenizer knows more words than the text encoder.
    """
    known = text_encoder.vocab_size
    if words > known:
        raise ValueError(
            f'the tokenizer has {words} words but text_encoder.config.vocab_size is {known}: '
            'raise it, or name the vocabulary that belongs to the text encoder'
        )


def text_identity(text: str) -> int:
    """A stable 63-bit number of a caption, equal for equal captions in every process."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), 'big') >> 1


@MODELS.register_module()
class ImageTextPreprocessor(BaseDataPreprocessor):
    """Stacks and normalises images and tokenises texts.

    Args:
        mean: of the RGB channels, in 0…255.
        std: of the RGB channels, in 0…255.
        tokenizer: arguments of :func:`build_tokenizer`.
        max_length: longest text in word pieces, special ones included; longer ones are cut.
    """

    def __init__(
        self, mean: list[float], std: list[float], tokenizer: dict, max_length: int = 30
    ) -> None:
        super().__init__(non_blocking=True)
        self.register_buffer('mean', torch.tensor(mean).view(3, 1, 1), persistent=False)
        self.register_buffer('std', torch.tensor(std).view(3, 1, 1), persistent=False)
        self.tokenizer = build_tokenizer(**tokenizer)
        self.max_length = max_length
        self._is_first = True

    def forward(self, data: dict, training: bool = False) -> dict:
        """Turns ``dict(inputs, data_samples)``, a tensor and a list, into a model's arguments.

        In test mode a sample's text is a list: all its captions stand one after another in the
        text rows, and ``text_image_ids`` says whose they are.
        """
        # Several images a sample, (B, K, 3, H, W), stand one after another.
        images = data['inputs'].flatten(0, -4).to(self.device, non_blocking=True)
        samples: list[DataSample] = data['data_samples']
        captions = [[s.text] if isinstance(s.text, str) else s.text for s in samples]
        texts = [text for own in captions for text in own]
        owners = [s.image_id for s, own in zip(samples, captions, strict=True) for _ in own]
        input_ids, attention_mask = self.tokenize(texts)
        batch = ImageTextBatch(
            images=self.normalize(images),
            input_ids=input_ids,
            attention_mask=attention_mask,
            image_ids=self._ids([s.image_id for s in samples]),
            text_ids=self._ids([text_identity(text) for text in texts]),
            text_image_ids=self._ids(owners),
        )
        return {'inputs': batch, 'data_samples': samples}

    def normalize(self, images: Tensor) -> Tensor:
        """uint8 pixels (B, 3, H, W) to zero mean and unit deviation."""
        return images.float().sub_(self.mean).div_(self.std)

    def tokenize(self, texts: list[str]) -> tuple[Tensor, Tensor]:
        """Texts to ``input_ids`` and bool ``attention_mask``, both (T, N)."""
        encoded = self.tokenizer(
            texts,
            padding='longest',
            truncation=True,
            max_length=self.max_length,
            return_tensors='pt',
            return_token_type_ids=False,
        )
        if self._is_first:
            self._is_first = False
            self._look_for_unknown(texts, encoded['input_ids'])
        return (
            encoded['input_ids'].to(self.device, non_blocking=True),
            encoded['attention_mask'].to(self.device, non_blocking=True).bool(),
        )

    def _look_for_unknown(self, texts: list[str], input_ids: Tensor) -> None:
        """Warns of a vocabulary that is not that of the texts."""
        is_special = torch.isin(input_ids, torch.tensor(self.tokenizer.all_special_ids))
        unknown = input_ids == self.tokenizer.unk_token_id
        share = unknown.sum() / (~is_special | unknown).sum().clamp(min=1)
        if share > 0.2:
            print_log(
                f'{share:.0%} of the words of the first {len(texts)} texts are unknown to the '
                f"tokenizer (of '{texts[0]}', say): is data_preprocessor.tokenizer.pretrained "
                'the vocabulary for them?',
                'current',
                level=logging.WARNING,
            )

    def _ids(self, numbers: list[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.int64).to(self.device, non_blocking=True)
