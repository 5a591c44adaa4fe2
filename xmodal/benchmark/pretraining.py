"""A pre-training step of the ALBEF family, as a benchmark takes it."""

import tempfile
from collections.abc import Sequence

import torch
from mmengine.config import Config
from mmengine.dist import get_rank
from mmengine.optim import build_optim_wrapper
from torch import Tensor, nn

from xmodal.benchmark.script import default_device, write_placeholder_vocabulary
from xmodal.benchmark.workers import TrainingStep
from xmodal.engine.launch import read_config
from xmodal.engine.layers import compile_layers, recompute_gelu
from xmodal.errors import ConfigError
from xmodal.registry import MODELS, register_all
from xmodal.structures import ImageTextBatch

ALPHA = 0.4  # the share of the teacher's soft targets, from the second epoch on


def read_pretraining(file: str) -> tuple[Config, nn.Module]:
    """Reads a config, and builds its model on the meta device, where it takes no memory.

    Raises:
        ConfigError: if it is no pre-training config of the ALBEF family.
    """
    register_all()
    config = read_config(file, 'model')
    if 'fusion' not in config.model.get('backbone', {}) or 'heads' not in config.model:
        raise ConfigError(f'{file}: expected a pre-training config of configs/acerpe')
    with torch.device('meta'):
        return config, build_model(config, None)


def build_model(config: Config, position: str | None) -> nn.Module:
    """Builds the model of a config with random weights and a placeholder vocabulary.

    Args:
        config: of a pre-training.
        position: in the place of the config's position; None for the config's.
    """
    model = config.model
    if position not in (None, model.backbone.position.type):
        model.backbone.position = dict(type=position)
    with tempfile.TemporaryDirectory() as folder:
        model.data_preprocessor.tokenizer.pretrained = write_placeholder_vocabulary(folder)
        return MODELS.build(model)


def random_batch(model: nn.Module, size: int, words: int | None, device: str) -> ImageTextBatch:
    """Makes a batch of random inputs in the shapes of a model, without padding.

    Args:
        model: a pre-trainer.
        size: number of pairs; those of several processes have numbers of their own.
        words: length of the texts, [CLS] included; None for the longest that the model takes.
        device: of the batch.
    """
    side, words = (
        model.backbone.image_encoder.image_size,
        words or model.data_preprocessor.max_length,
    )
    ids = torch.arange(size, device=device) + size * get_rank()
    input_ids = torch.randint(5, 100, (size, words), device=device)
    input_ids[:, 0] = model.data_preprocessor.tokenizer.cls_token_id
    return ImageTextBatch(
        images=torch.randn(size, 3, side, side, device=device),
        input_ids=input_ids,
        attention_mask=torch.ones(size, words, dtype=torch.bool, device=device),
        image_ids=ids,
        text_ids=ids,
        text_image_ids=ids,
    )


class PretrainingStep(TrainingStep):
    """A training step of a config's model with its optimizer wrapper.

    Args:
        config: file of the config.
        position: see :func:`build_model`.
        batch_size: pairs of a step.
        words: see :func:`random_batch`.
        amp: whether to autocast to bfloat16.
        image_size: height and width in pixels; None for the config's.
        compiled: classes of layers that are compiled, see the config's key ``compile``.
    """

    def __init__(
        self,
        config: str,
        position: str | None,
        batch_size: int,
        words: int | None,
        amp: bool,
        image_size: int | None = None,
        compiled: Sequence[str] = (),
    ) -> None:
        register_all()
        torch.manual_seed(0)
        device, settings = default_device(), read_config(config, 'model')
        if image_size:
            settings.model.backbone.image_encoder.image_size = image_size
        self.model = build_model(settings, position).to(device).train()
        recompute_gelu(self.model)  # as the runner does
        compile_layers(self.model, compiled)
        self.model.distillation_weight = ALPHA
        self.batch = random_batch(self.model, batch_size, words, device)
        self.called = self.distribute(settings)
        dtype = 'bfloat16' if amp else None
        self.wrapper = build_optim_wrapper(self.model, {**settings.optim_wrapper, 'dtype': dtype})

    def distribute(self, settings: Config) -> nn.Module:
        """What a step calls: the model, which several processes shard or wrap."""
        return self.model

    def losses(self) -> dict[str, Tensor]:
        """The losses of the batch."""
        values = self.called(self.batch, mode='loss')
        return {name: value for name, value in values.items() if 'loss' in name}

    def __call__(self) -> None:
        with self.wrapper.optim_context(self.called):
            loss = sum(self.losses().values())
        self.wrapper.update_params(loss)
        self.model.update_momentum()
