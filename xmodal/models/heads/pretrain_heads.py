"""The objectives of a pre-training together: built, called and added up."""

from collections.abc import Mapping

from torch import Tensor, nn

from xmodal.arguments import accepted_parameters
from xmodal.models.fusion import fuse_requests
from xmodal.models.heads.head_checks import check_head, check_request, check_values
from xmodal.models.heads.pretrain_head import PretrainHead
from xmodal.registry import MODELS
from xmodal.structures import LxmertStep, PretrainStep


class PretrainHeads(nn.ModuleDict):
    """The objectives of a pre-training, by name.

    Their order does not depend on that of the config, whose keys MMEngine sorts when it saves it:
    random draws and the optimizer's state stay where they are.

    Args:
        configs: of the heads, by name; None leaves out a head of an inherited config.
        sizes: of the model, for the constructors that ask for them.

    Attributes:
        active: names of the heads that are trained; a hook may let some begin later.

    Raises:
        ValueError: when there is no head, or one of them is no :class:`PretrainHead`.
    """

    def __init__(self, configs: Mapping[str, dict | None], sizes: Mapping[str, int]) -> None:
        super().__init__()
        kinds = {name: _kind(config) for name, config in configs.items() if config is not None}
        for name in sorted(kinds, key=lambda name: (getattr(kinds[name], 'order', 0), name)):
            self[name] = _build_head(name, configs[name], kinds[name], sizes)
        if not self:
            raise ValueError(f'model.heads is empty: {dict(configs)}, expected at least one head')
        self.active = frozenset(self)

    def init_weights(self) -> None:
        """Loads the heads' pretrained weights, where the config names some."""
        for head in self.values():
            head.init_weights()

    def active_heads(self) -> list[PretrainHead]:
        """The heads that are trained now."""
        return [head for name, head in self.items() if name in self.active]

    def loss(self, model: nn.Module, step: PretrainStep | LxmertStep) -> dict[str, Tensor]:
        """The values of all active heads.

        Raises:
            ValueError: when two heads log a value of the same name, or one logs ``loss``, the name
                of the sum of all, or trains nothing, or requests no pairs of tokens.
        """
        heads = {name: head for name, head in self.items() if name in self.active}
        asked = {name: head.request_fusion(model, step) for name, head in heads.items()}
        requests = {name: request for name, request in asked.items() if request is not None}
        for name, request in requests.items():
            check_request(name, heads[name], request)
        results = fuse_requests(model.backbone, list(requests.values())) if requests else []
        fused = dict(zip(requests, results, strict=True))
        values: dict[str, Tensor] = {}
        for name, head in heads.items():
            if name in requests:
                of_head = head.fused_loss(model, step, requests[name], fused[name])
            else:
                of_head = head.loss(model, step)
            check_values(name, head, of_head)
            if clash := (values.keys() | {'loss'}) & of_head.keys():
                raise ValueError(
                    f'model.heads.{name} logs {sorted(clash)}, as another head or the sum of all '
                    'losses does: name the values after the head'
                )
            values |= of_head
        return values


def _kind(config: Mapping) -> type | None:
    """The class of a head; None where the config has none, of which its building tells."""
    kind = config.get('type')
    return MODELS.get(kind) if isinstance(kind, str) else kind


def _build_head(
    name: str, config: dict, kind: type | None, sizes: Mapping[str, int]
) -> PretrainHead:
    """A head, with the sizes that its constructor asks for."""
    parameters, _ = accepted_parameters(kind) if kind else ({}, True)
    wanted = {key: value for key, value in sizes.items() if key in parameters}
    head = MODELS.build({**config, **wanted})
    check_head(name, head)
    return head
