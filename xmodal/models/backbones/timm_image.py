"""Image encoders of any architecture of ``timm``."""

from timm.models import group_parameters
from torch import Tensor, cat, nn

from xmodal.errors import ConfigError
from xmodal.models.backbones.encoder import Encoder, require_image_size
from xmodal.models.backbones.timm_grid import TimmGrid
from xmodal.registry import MODELS
from xmodal.structures import Tokens


@MODELS.register_module()
class TimmImageEncoder(Encoder):
    """The feature map of any model of ``timm`` as tokens, after a token that sums the image up.

    CNNs, ConvNeXts, hybrids and ViTs, the image towers of CLIP, SigLIP and DINOv2 among them, each
    trained from end to end, or frozen. The summary is what timm's classifier would get: the pooled
    map of a CNN, the class token of a ViT, SigLIP's attention pooling. Of an inner stage it is the
    mean of the cells. Images are normalised as the weights expect if ``data_preprocessor`` has
    ``mean`` and ``std`` of :class:`TimmGrid`.

    Args:
        arch: name in timm.
        image_size: height and width of the images, in pixels.
        embed_dims: D, width of the tokens, by a linear layer each for cells and summary; None
            leaves the features as they are.
        **grid: see :class:`TimmGrid`: ``stage``, ``pretrained``, and what timm takes, such as
            ``output_stride=16``.

    Shape:
        images: (B, 3, H, W). Returns tokens of (B, 1 + M, D) with their grid.

    Raises:
        ValueError: when timm has no such model or stage, or summary and cells differ in width and
            ``embed_dims`` is None.
    """

    has_cls = True
    has_block_inputs = False

    def __init__(self, arch: str, image_size: int, embed_dims: int | None = None, **grid) -> None:
        super().__init__()
        self.grid = TimmGrid(arch, image_size, **grid)
        self.image_size = image_size
        widths = self.grid.feature_dims, self.grid.summary_dims
        if embed_dims is None and widths[0] != widths[1]:
            raise ValueError(
                f"the cells of '{arch}' are {widths[0]} wide and its summary {widths[1]}: set "
                'image_encoder.embed_dims'
            )
        self.embed_dims = embed_dims or widths[0]
        self.cell_projection, self.summary_projection = (
            nn.Identity() if embed_dims is None else nn.Linear(width, embed_dims)
            for width in widths
        )

    def init_weights(self) -> None:
        """Loads the pretrained weights, if any are asked for; see :class:`TimmGrid`."""
        self.grid.init_weights()

    def embed(self, images: Tensor) -> Tokens:
        """The whole model of timm: there are no tokens before its first block.

        Raises:
            ValueError: when the images are of another size.
        """
        require_image_size(images, self.image_size)
        cells, summary = self.grid.encode(images)
        tokens = self.summary_projection(summary)[:, None], self.cell_projection(cells)
        side = round(cells.shape[1] ** 0.5)
        return Tokens(cat(tokens, 1), grid_size=(side, side))

    def encode(self, tokens: Tokens) -> Tokens:
        """The tokens as they are."""
        return tokens

    def layer_distances(self) -> dict[str, int]:
        """See :class:`Encoder`; of other models than ViTs, timm knows the layers.

        Raises:
            ConfigError: when it does not.
        """
        model = self.grid.model
        if hasattr(model, 'blocks') and hasattr(model, 'patch_embed'):
            return super().layer_distances()
        if not hasattr(model, 'group_matcher'):
            raise ConfigError(
                f"timm does not know the layers of image_encoder.arch='{self.grid.arch}', which "
                'layer_decay needs: leave it out of optim_wrapper.paramwise_cfg'
            )
        layers = group_parameters(model, model.group_matcher(coarse=False), reverse=True)
        above = max(layers.values()) + 1
        distances = {f'grid.model.{name}': above - layer for name, layer in layers.items()}
        return {name: distances.get(name, 0) for name, _ in self.named_parameters()}
