"""Masked object prediction (LXMERT)."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, smooth_l1_loss

from xmodal.registry import MODELS
from xmodal.structures import Regions

TASKS = ('features', 'objects', 'attributes')


class MaskedRegions(NamedTuple):
    """Regions with features hidden.

    Attributes:
        regions: some features replaced; boxes are never hidden.
        chosen: regions to predict, (B, R) bool.
    """

    regions: Regions
    chosen: Tensor


@MODELS.register_module()
class ObjectHead(nn.Module):
    """Predicts hidden regions: RoI-feature regression and detected-label classification (Sec. 3.1).

    15 % of the regions are chosen: 80 % of them get features of zeros, 10 % those of a random
    region of the batch, 10 % keep theirs. Every loss is a sum over regions, divided by the number
    that is chosen in expectation.

    Where the paper and the released code differ, the defaults are the paper's; the code's are
    ``feature_loss='smooth_l1'``, ``label_scope='all'`` and ``confidence_weight=True``.

    Args:
        embed_dims: D.
        feature_dims: F, width of a region's features.
        num_objects: object classes of the detector.
        num_attributes: its attribute classes.
        tasks: some of 'features', 'objects', 'attributes' (Table 5).
        feature_loss: 'l2', the squared error, or 'smooth_l1', Huber's with β = 1; both are means
            over F.
        label_scope: 'masked': classes of the chosen regions are learned; 'all': those of every
            region, seen or not.
        confidence_weight: weigh a region's classes by how sure the detector is of them.
        mask_probability: share of regions chosen.

    Raises:
        ValueError: when a switch has an unknown value.
    """

    def __init__(
        self,
        embed_dims: int,
        feature_dims: int,
        num_objects: int = 1600,
        num_attributes: int = 400,
        tasks: Sequence[str] = TASKS,
        feature_loss: str = 'l2',
        label_scope: str = 'masked',
        confidence_weight: bool = False,
        mask_probability: float = 0.15,
    ) -> None:
        super().__init__()
        if not tasks or set(tasks) - set(TASKS):
            raise ValueError(
                f'heads.objects.tasks={list(tasks)}, expected some of {", ".join(TASKS)}; for none '
                'set heads.objects=None'
            )
        if feature_loss not in ('l2', 'smooth_l1'):
            raise ValueError(
                f"heads.objects.feature_loss='{feature_loss}', expected 'l2' or 'smooth_l1'"
            )
        if label_scope not in ('masked', 'all'):
            raise ValueError(
                f"heads.objects.label_scope='{label_scope}', expected 'masked' or 'all'"
            )
        self.feature_loss, self.confidence_weight = feature_loss, confidence_weight
        self.mask_probability = mask_probability
        self.label_names = [task for task in TASKS[1:] if task in tasks]
        self.predicts_all = label_scope == 'all' and bool(self.label_names)
        widths = dict(zip(TASKS, (feature_dims, num_objects, num_attributes), strict=True))
        self.transform = nn.Linear(embed_dims, embed_dims)
        self.norm = nn.LayerNorm(embed_dims, eps=1e-12)
        self.decoders = nn.ModuleDict(
            {task: nn.Linear(embed_dims, widths[task]) for task in TASKS if task in tasks}
        )

    def mask(self, regions: Regions) -> MaskedRegions:
        """Hides features of regions."""
        real, features = regions.attention_mask, regions.features
        chosen = real & (torch.rand(real.shape, device=real.device) < self.mask_probability)
        fate = torch.rand(real.shape, device=real.device)
        hidden = features.masked_fill((chosen & (fate < 0.8))[..., None], 0)
        swapped, pool = chosen & (fate >= 0.9), real.flatten().nonzero().squeeze(1)
        drawn = torch.randint(len(pool), (int(swapped.sum()),), device=pool.device)
        hidden[swapped] = features.flatten(0, 1)[pool[drawn]]
        return MaskedRegions(regions._replace(features=hidden), chosen)

    def loss(self, tokens: Tensor, regions: Regions, chosen: Tensor) -> dict[str, Tensor]:
        """``loss_features``, ``loss_objects`` and ``loss_attributes``, those that are trained.

        Nothing is computed of regions that no loss asks for.

        Args:
            tokens: fused regions, (B, R, D).
            regions: as they were before any was hidden.
            chosen: those hidden, (B, R) bool.

        Raises:
            ValueError: when labels are to be learned and there are none.
        """
        asked = regions.attention_mask if self.predicts_all else chosen
        hidden = self.norm(gelu(self.transform(tokens[asked])))
        expected = regions.attention_mask.sum() * self.mask_probability
        losses = {}
        if 'features' in self.decoders:
            predicted = self.decoders['features'](hidden[chosen[asked]]).float()
            error = self._error(predicted, regions.features[chosen].float())
            losses['loss_features'] = error.sum() / expected
        for name in self.label_names:
            classes, confidences = self._labels(regions, name)
            logits = self.decoders[name](hidden).float()
            error = cross_entropy(logits, classes[asked], reduction='none')
            if self.confidence_weight:
                error = error * confidences[asked]
            losses[f'loss_{name}'] = error.sum() / expected
        return losses

    def _error(self, predicted: Tensor, features: Tensor) -> Tensor:
        """Mean over the F numbers of each region, (K,)."""
        if self.feature_loss == 'l2':
            return (predicted - features).square().mean(-1)
        return smooth_l1_loss(predicted, features, reduction='none').mean(-1)

    def _labels(self, regions: Regions, name: str) -> tuple[Tensor, Tensor]:
        """Classes and confidences, (B, R) each."""
        if regions.labels is None:
            raise ValueError(
                f"heads.objects.tasks has '{name}', but the regions have no labels: read features "
                "whose store has them (docs/regions.md), or leave out 'objects' and 'attributes'"
            )
        if name == 'objects':
            return regions.labels.objects, regions.labels.object_confidences
        return regions.labels.attributes, regions.labels.attribute_confidences
