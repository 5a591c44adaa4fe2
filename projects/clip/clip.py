"""A CLIP or SigLIP of ``transformers`` as it is: its weights, its images and its texts.

All is read from one folder (or name on the hub): the model, its image processor, its tokenizer and
the longest text.
"""

import torch
from mmcv.transforms import BaseTransform
from torch import Tensor
from torch.nn.functional import normalize, pad
from transformers import AutoConfig, AutoImageProcessor, CLIPModel, PreTrainedConfig, SiglipModel

from xmodal.errors import ConfigError
from xmodal.models.base import CrossModalModel, ImageTextPreprocessor
from xmodal.models.base.tokenizer import fills_table
from xmodal.models.layers.bert import read_pretrained
from xmodal.registry import MODELS, TRANSFORMS
from xmodal.structures import Encoded
from xmodal.weights import find_weights

KINDS = {'clip': CLIPModel, 'siglip': SiglipModel}


@TRANSFORMS.register_module()
class CLIPImage(BaseTransform):
    """Resizes and crops as the image processor of a model does: ``img`` stays uint8 (3, H, W).

    The preprocessor normalises.

    Args:
        pretrained: as of :class:`PretrainedCLIP`.
    """

    def __init__(self, pretrained: str) -> None:
        self.processor = read_image_processor(pretrained)

    def transform(self, results: dict) -> dict:
        """Changes ``img``."""
        resized = self.processor(
            results['img'], do_rescale=False, do_normalize=False, return_tensors='pt'
        )
        results['img'] = resized['pixel_values'][0]
        return results


class CLIPPreprocessor(ImageTextPreprocessor):
    """Normalises images and tokenises texts as the processors of a model do.

    Args:
        pretrained: as of :class:`PretrainedCLIP`.
    """

    def __init__(self, pretrained: str) -> None:
        config, processor = read_config(pretrained), read_image_processor(pretrained)
        super().__init__(
            mean=[255 * x for x in processor.image_mean],
            std=[255 * x for x in processor.image_std],
            tokenizer=dict(pretrained=pretrained, family='auto', add_cls=False),
            max_length=config.text_config.max_position_embeddings,
        )
        words = config.text_config.vocab_size
        if not fills_table(self.vocab_size, words):
            raise ConfigError(
                f"model.pretrained='{pretrained}': its tokenizer has {self.vocab_size} words and "
                f'its text encoder {words}: save the tokenizer of the model there, too'
            )


@MODELS.register_module()
class PretrainedCLIP(CrossModalModel):
    """A CLIP or SigLIP with its own weights, to be tested.

    Args:
        pretrained: a folder with the model, its image processor and its tokenizer
            (``save_pretrained`` of each), a name on the hub, or a source (:mod:`xmodal.weights`).

    Raises:
        ConfigError: when there is no such folder or name, or it is of another architecture, or it
            lacks the image processor or the tokenizer.
        ValueError: when it lacks weights.
    """

    needs_checkpoint = False

    def __init__(self, pretrained: str) -> None:
        super().__init__(CLIPPreprocessor(pretrained))
        kind = KINDS[read_config(pretrained).model_type]
        self.model = read_pretrained(kind, pretrained, 'model.pretrained', dtype=torch.float32)

    def encode_image(self, images: Tensor) -> Encoded:
        """Normalised pixels (B, 3, H, W) to embeddings (B, d)."""
        return _encoded(self.model.get_image_features(pixel_values=images).pooler_output)

    def encode_text(self, input_ids: Tensor, attention_mask: Tensor) -> Encoded:
        """Word pieces (B, N) to embeddings (B, d).

        SigLIP was trained on texts that are padded to the longest length, without a mask.
        """
        mask = attention_mask.long()
        if isinstance(self.model, SiglipModel):
            absent = self.data_preprocessor.max_length - input_ids.shape[1]
            padding = self.data_preprocessor.tokenizer.pad_token_id
            input_ids, mask = pad(input_ids, (0, absent), value=padding), None
        features = self.model.get_text_features(input_ids=input_ids, attention_mask=mask)
        return _encoded(features.pooler_output)

    def logits(self, similarity: Tensor) -> Tensor:
        """Cosines as the model's logits, of which it takes a softmax (CLIP) or sigmoid (SigLIP)."""
        bias = getattr(self.model, 'logit_bias', 0)
        return self.model.logit_scale.exp() * similarity + bias


def _encoded(features: Tensor) -> Encoded:
    return Encoded(None, normalize(features, dim=-1))


def read_config(pretrained: str) -> PreTrainedConfig:
    """The configuration of a model.

    Raises:
        ConfigError: when there is none, or it is of another architecture.
    """
    try:
        config = AutoConfig.from_pretrained(find_weights(pretrained, 'model.pretrained'))
    except (OSError, ValueError) as error:  # ValueError: no architecture is named
        raise ConfigError(
            f"model.pretrained='{pretrained}' is neither a folder with a model of transformers nor "
            f'reachable on the hub: {error}'
        ) from error
    if config.model_type not in KINDS:
        raise ConfigError(
            f"model.pretrained='{pretrained}' is a '{config.model_type}', expected a CLIPModel or "
            'a SiglipModel'
        )
    return config


def read_image_processor(pretrained: str) -> AutoImageProcessor:
    """The image processor of a model.

    Raises:
        ConfigError: when there is none.
    """
    try:
        return AutoImageProcessor.from_pretrained(find_weights(pretrained, 'model.pretrained'))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"model.pretrained='{pretrained}' has no image processor: save that of the model "
            f'there, too (preprocessor_config.json): {error}'
        ) from error
