"""The protocol of a pre-training objective, built in or a user's."""

from collections.abc import Mapping

from torch import Tensor, nn

from xmodal.arguments import accepted_parameters
from xmodal.models.fusion import FusionRequest, fuse_requests, what_is_unfit
from xmodal.registry import MODELS
from xmodal.structures import Fused, LxmertStep, PretrainStep, Shown


class PretrainHead(nn.Module):
    """An objective: its losses of one step, with the whole model to use.

    It owns its masking and its distillation. A head that reads fused words alone requests them, so
    that the fusion encoder runs once for all such heads, and has :meth:`fused_loss`; any other has
    :meth:`loss`, and fuses itself what it needs. A constructor that has a parameter ``embed_dims``,
    ``vocab_size``, ``patch_size`` or ``feature_dims`` gets it from the model.

    Attributes:
        order: heads are built and called in this order, and then by name.
        has_teacher: whether the momentum teacher has a copy of the head (ALBEF family).
        reads_tokens: whether it reads tokens, and not the embeddings alone (ALBEF family).
        reads_image_tokens: whether it reads the fused image tokens (LXMERT).
        min_batch: pairs that a process's batch needs at least, where the others are negatives.
        min_keys: the same of the batches of all processes together with the queue.
    """

    order = 10
    min_batch = min_keys = 1
    has_teacher = False
    reads_tokens = True
    reads_image_tokens = True

    def init_weights(self) -> None:
        """Loads pretrained weights where the config names some; called when training starts."""

    def check(self, model: nn.Module) -> None:
        """Raises ValueError where the model, whole by now, lacks what the objective needs."""

    def loss(self, model: nn.Module, step: PretrainStep | LxmertStep) -> dict[str, Tensor]:
        """Values by name: those with 'loss' in the name are added up, the others are logged."""
        raise NotImplementedError

    def request_fusion(self, model: nn.Module, step: PretrainStep) -> FusionRequest | None:
        """What is to be fused for :meth:`fused_loss`; None for :meth:`loss` (ALBEF family)."""
        return None

    def fused_loss(
        self, model: nn.Module, step: PretrainStep, request: FusionRequest, fused: Fused
    ) -> dict[str, Tensor]:
        """As :meth:`loss`, with what was requested."""
        raise NotImplementedError

    def replace_texts(self, model: nn.Module, shown: Shown) -> Shown:
        """What LXMERT is shown with some texts replaced, before anything is masked."""
        return shown

    def mask(self, model: nn.Module, shown: Shown) -> Shown:
        """What LXMERT is shown with words or regions masked."""
        return shown


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
            if unfit := what_is_unfit(request):
                kind = type(heads[name]).__name__
                raise ValueError(f'model.heads.{name}: {kind}.request_fusion returned {unfit}')
        results = fuse_requests(model.backbone, list(requests.values())) if requests else []
        fused = dict(zip(requests, results, strict=True))
        values: dict[str, Tensor] = {}
        for name, head in heads.items():
            if name in requests:
                of_head = head.fused_loss(model, step, requests[name], fused[name])
            else:
                of_head = head.loss(model, step)
            if not isinstance(of_head, Mapping):
                raise ValueError(
                    f'model.heads.{name}: the loss of {type(head).__name__} returned '
                    f'{type(of_head).__name__}, expected values by name, as {{"loss_{name}": …}}'
                )
            _check_values(name, of_head)
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
    if not isinstance(head, PretrainHead):
        raise ValueError(
            f'model.heads.{name}: {type(head).__name__} is no PretrainHead, whose '
            'loss(model, step) is called in pre-training (docs/plugins.md)'
        )
    if missing := _missing_method(type(head)):
        raise ValueError(
            f'model.heads.{name}: {type(head).__name__} has no method {missing}: a head has '
            'loss(model, step), which returns values by name, or both request_fusion(model, step) '
            'and fused_loss(model, step, request, fused) (docs/plugins.md)'
        )
    return head


def _missing_method(kind: type[PretrainHead]) -> str | None:
    methods = ('loss', 'request_fusion', 'fused_loss')
    own = {name for name in methods if getattr(kind, name) is not getattr(PretrainHead, name)}
    if 'request_fusion' in own:
        return None if 'fused_loss' in own else 'fused_loss(model, step, request, fused)'
    return None if 'loss' in own else 'loss(model, step)'


def _check_values(name: str, values: Mapping[str, Tensor]) -> None:
    """Refuses values of a head that nothing adds up, or that are no tensors."""
    for key, value in values.items():
        if not isinstance(value, Tensor | list):  # MMEngine adds up lists of tensors
            raise ValueError(
                f"model.heads.{name}: '{key}' of its loss is {type(value).__name__}, expected a "
                'tensor, without .item()'
            )
        if isinstance(value, Tensor) and not value.is_floating_point():
            raise ValueError(
                f"model.heads.{name}: '{key}' of its loss is of {value.dtype}, expected numbers of "
                'which a mean can be taken: .float()'
            )
    has_gradient = any(isinstance(x, Tensor) and x.requires_grad for x in values.values())
    if has_gradient and not any('loss' in key for key in values):
        raise ValueError(
            f"model.heads.{name} trains nothing: none of its values, {list(values)}, has 'loss' in "
            f"its name, and only those are added up. Call it 'loss_{name}', and detach() a value "
            'that is only logged'
        )


def by_match(
    figures: dict[str, Tensor], matched: Tensor, counts: Tensor | None = None
) -> dict[str, Tensor]:
    """Means over matched and over mismatched pairs, ``NAME_matched`` and ``NAME_mismatched``.

    Args:
        figures: of each pair, (B,) by name, as a position's ``statistics``.
        matched: (B,) bool.
        counts: (B,) bool, False for a pair that stands for none; None where all count.

    Raises:
        ValueError: when a figure is not one number a pair, or its name would make it a loss.
    """
    if not isinstance(figures, Mapping):
        raise ValueError(
            f'position.statistics returned {type(figures).__name__}, expected figures by name'
        )
    for name, figure in figures.items():
        if not isinstance(figure, Tensor) or figure.shape != matched.shape:
            found = tuple(figure.shape) if isinstance(figure, Tensor) else type(figure).__name__
            raise ValueError(
                f"position.statistics: '{name}' is {found}, expected {tuple(matched.shape)}, a "
                'figure of each pair'
            )
        if 'loss' in name:
            raise ValueError(
                f"position.statistics: '{name}' has 'loss' in its name, and would be added to the "
                'losses: statistics are only logged. A head makes a loss'
            )
    mismatched = ~matched if counts is None else ~matched & counts
    return {
        # Without an index, which a GPU would be waited for.
        f'{name}_{suffix}': figure.where(rows, 0).sum() / rows.sum().clamp(min=1)
        for name, figure in figures.items()
        for suffix, rows in (('matched', matched), ('mismatched', mismatched))
    }
