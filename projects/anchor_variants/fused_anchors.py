"""Anchors between the tokens that the previous fusion layer returns."""

from xmodal.models.fusion import FusionEncoder
from xmodal.models.fusion.layer import FusionLayer, LayerNeeds
from xmodal.models.fusion.stream import Stream
from xmodal.models.necks.position import NoPosition
from xmodal.registry import MODELS
from xmodal.structures import CrossAttentions, Relation


class ReanchoredLayer(FusionLayer):
    """Relates the words and patches that reach it; the paper's layers share one relation."""

    def forward(
        self,
        image: Stream,
        text: Stream,
        position: NoPosition,
        index: int,
        relation: Relation,
        needs: LayerNeeds,
    ) -> tuple[Stream, Stream, CrossAttentions]:
        """As :class:`FusionLayer`. The first layer has the relation of the encoders' outputs."""
        if index > 0:
            relation = position.relate(image.paired().tokens, text.paired().tokens)
        return super().forward(image, text, position, index, relation, needs)


@MODELS.register_module()
class ReanchoredFusionEncoder(FusionEncoder):
    """Every layer finds its own anchors, between tokens that have seen the other modality."""

    layer_type = ReanchoredLayer
