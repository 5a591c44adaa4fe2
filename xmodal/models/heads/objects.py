"""Masked object prediction (LXMERT)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, smooth_l1_loss

from xmodal.models.heads.pretrain_head import PretrainHead
from xmodal.models.heads.shares import require_share
from xmodal.registry import MODELS
from xmodal.structures import LxmertStep, Regions, Shown

TASKS = ('features', 'objects', 'attributes')


@MODELS.register_module()
class ObjectHead(PretrainHead):
    """Predicts masked regions: RoI-feature regression and detected-label classification (Sec. 3.1).

    15 % of the regions are targets, whose features are masked. Every loss is a sum over regions,
    divided by the expected number of targets.

    Where the paper and the released code differ, the defaults are the paper's; the code's are
    ``masking='bert'``, ``feature_loss='smooth_l1'``, ``label_scope='all'`` and
    ``confidence_weight=True``.

    Args:
        embed_dims: D.
        feature_dims: F, width of a region's features.
        num_objects: object classes of the detector.
        num_attributes: its attribute classes.
        tasks: some of 'features', 'objects', 'attributes' (Table 5).
        masking: 'zeros': all targets get features of zeros; 'bert', as BERT masks words: 80 % of
            them get zeros, 10 % the features of a random region of the batch, 10 % keep theirs.
        feature_loss: 'l2', the squared error, or 'smooth_l1', Huber's with β = 1; both are means
            over F.
        label_scope: 'masked': the classes of masked regions are learned; 'all': those of every
            region.
        confidence_weight: weigh a region's classes by the confidence of the detector.
        mask_probability: share of regions that are targets.
        classifier: config of the :class:`GridExtractor` that computed the features, for grid
            features, which no detector has labelled: the object of a cell is the class that the
            classifier of its weights sees in it, without its bias. None: the labels come with the
            regions.

    Raises:
        ValueError: when a switch has an unknown value.
    """

    order = 5

    def __init__(
        self,
        embed_dims: int,
        feature_dims: int,
        num_objects: int = 1600,
        num_attributes: int = 400,
        tasks: Sequence[str] = TASKS,
        masking: str = 'zeros',
        feature_loss: str = 'l2',
        label_scope: str = 'masked',
        confidence_weight: bool = False,
        mask_probability: float = 0.15,
        classifier: dict | None = None,
    ) -> None:
        super().__init__()
        if not tasks or set(tasks) - set(TASKS):
            raise ValueError(
                f'heads.objects.tasks={list(tasks)}, expected some of {", ".join(TASKS)}; for none '
                'set heads.objects=None'
            )
        if masking not in ('zeros', 'bert'):
            raise ValueError(f"heads.objects.masking='{masking}', expected 'zeros' or 'bert'")
        if feature_loss not in ('l2', 'smooth_l1'):
            raise ValueError(
                f"heads.objects.feature_loss='{feature_loss}', expected 'l2' or 'smooth_l1'"
            )
        if label_scope not in ('masked', 'all'):
            raise ValueError(
                f"heads.objects.label_scope='{label_scope}', expected 'masked' or 'all'"
            )
        require_share('heads.objects.mask_probability', mask_probability)
        self.masking = masking
        self.feature_loss, self.confidence_weight = feature_loss, confidence_weight
        self.mask_probability = mask_probability
        self.label_names = [task for task in TASKS[1:] if task in tasks]
        self.predicts_all = label_scope == 'all' and bool(self.label_names)
        widths = dict(zip(TASKS, (feature_dims, num_objects, num_attributes), strict=True))
        self.classifier = classifier
        if classifier is not None:
            self.register_buffer('class_vectors', torch.zeros(num_objects, feature_dims))
        self.transform = nn.Linear(embed_dims, embed_dims)
        self.norm = nn.LayerNorm(embed_dims, eps=1e-12)
        self.decoders = nn.ModuleDict(
            {task: nn.Linear(embed_dims, widths[task]) for task in TASKS if task in tasks}
        )

    def init_weights(self) -> None:
        """Reads the vectors of the classes, where a classifier labels the regions.

        Raises:
            ValueError: when they are of another number.
        """
        if self.classifier is None:
            return
        vectors = MODELS.build(self.classifier).class_weights()
        if vectors.shape != self.class_vectors.shape:
            raise ValueError(
                f'heads.objects.classifier has {len(vectors)} classes of {vectors.shape[1]} '
                f'features, expected {len(self.class_vectors)} (num_objects) of '
                f'{self.class_vectors.shape[1]}'
            )
        self.class_vectors.copy_(vectors)

    def mask(self, model: nn.Module, shown: Shown) -> Shown:
        """Masks features of the regions that are shown."""
        regions, targets = self.mask_regions(shown.batch.images)
        batch = shown.batch._replace(images=regions)
        return shown._replace(batch=batch, masked_regions=targets)

    def mask_regions(self, regions: Regions) -> tuple[Regions, Tensor]:
        """Regions with features masked, their boxes never, and those to predict, (B, R) bool."""
        real, features = regions.attention_mask, regions.features
        targets = real & (torch.rand(real.shape, device=real.device) < self.mask_probability)
        if self.masking == 'zeros':
            masked = features.masked_fill(targets[..., None], 0)
        else:
            masked = _mask_as_bert(features, real, targets)
        return regions._replace(features=masked), targets

    def loss(self, model: nn.Module, step: LxmertStep) -> dict[str, Tensor]:
        """See :meth:`region_loss`."""
        return self.region_loss(
            step.fused.image_tokens, step.batch.images, step.shown.masked_regions
        )

    def region_loss(self, tokens: Tensor, regions: Regions, targets: Tensor) -> dict[str, Tensor]:
        """``loss_features``, ``loss_objects`` and ``loss_attributes``, those that are trained.

        Regions that no loss reads are not computed.

        Args:
            tokens: fused regions, (B, R, D).
            regions: before any was masked.
            targets: the masked ones, (B, R) bool.

        Raises:
            ValueError: when labels are to be learned and there are none, or one is no class of the
                head.
        """
        predicted = regions.attention_mask if self.predicts_all else targets
        hidden = self.norm(gelu(self.transform(tokens[predicted])))
        expected_count = regions.attention_mask.sum() * self.mask_probability
        losses = {}
        if 'features' in self.decoders:
            features = self.decoders['features'](hidden[targets[predicted]]).float()
            error = self._error(features, regions.features[targets].float())
            losses['loss_features'] = error.sum() / expected_count
        for name in self.label_names:
            classes, confidences = self._labels(regions, name, predicted)
            logits = self.decoders[name](hidden).float()
            error = cross_entropy(logits, classes, reduction='none')
            if self.confidence_weight:
                error = error * confidences
            losses[f'loss_{name}'] = error.sum() / expected_count
        return losses

    def _error(self, predicted: Tensor, features: Tensor) -> Tensor:
        """Mean over the F numbers of each region, (K,)."""
        if self.feature_loss == 'l2':
            return (predicted - features).square().mean(-1)
        return smooth_l1_loss(predicted, features, reduction='none').mean(-1)

    def _labels(self, regions: Regions, name: str, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Classes and confidences of some regions, (B, R) bool to (K,) each."""
        if name == 'objects' and self.classifier is not None:
            shares = (regions.features[rows].float() @ self.class_vectors.T).softmax(1)
            confidences, classes = shares.max(1)
            return classes, confidences
        if regions.labels is None:
            raise ValueError(
                f"heads.objects.tasks has '{name}', but the regions have no labels: read a "
                "store with labels (docs/regions.md), or leave out 'objects' and 'attributes'; "
                'for grid features set heads.objects.classifier'
            )
        labels = regions.labels
        of_all = labels[:2] if name == 'objects' else labels[2:]
        classes, confidences = (values[rows] for values in of_all)
        _require_known(classes, name, self.decoders[name].out_features)
        return classes, confidences


def _require_known(classes: Tensor, name: str, count: int) -> None:
    """Refuses classes (K,) from ``count`` on: the loss would not name the key."""
    highest = int(classes.max()) if len(classes) else -1
    if highest >= count:
        raise ValueError(
            f'heads.objects.num_{name}={count}, but a region has the class {highest}, counted from '
            f'0: set num_{name} to the number of classes of the detector, at least {highest + 1}'
        )


def _mask_as_bert(features: Tensor, real: Tensor, targets: Tensor) -> Tensor:
    """Replaces the features of targets: 80 % by zeros, 10 % by those of a random real region.

    Args:
        features: (B, R, F).
        real: regions that are not padding, (B, R) bool.
        targets: (B, R) bool.
    """
    action = torch.rand(real.shape, device=real.device)
    masked = features.masked_fill((targets & (action < 0.8))[..., None], 0)
    swapped, pool = targets & (action >= 0.9), real.flatten().nonzero().squeeze(1)
    sampled = torch.randint(len(pool), (int(swapped.sum()),), device=pool.device)
    masked[swapped] = features.flatten(0, 1)[pool[sampled]]
    return masked
