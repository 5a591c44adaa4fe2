"""Readers of the benchmarks' formats, and the samplers, transforms and collate functions."""

from xmodal.datasets import samplers, transforms
from xmodal.datasets.captions import (
    AlbefJsonDataset,
    CaptionDataset,
    CocoCaptionDataset,
    KarpathyDataset,
)
from xmodal.datasets.class_folders import ClassFolderDataset
from xmodal.datasets.collate import stack_images, stack_regions
from xmodal.datasets.concat import WeightedConcatDataset
from xmodal.datasets.entailment import (
    ENTAILMENT_CLASSES,
    AlbefEntailmentDataset,
    SnliVeDataset,
)
from xmodal.datasets.gqa import GqaDataset
from xmodal.datasets.instances import InstanceDataset
from xmodal.datasets.lxmert import (
    LxmertPretrainDataset,
    LxmertQuestionDataset,
    LxmertReasoningDataset,
)
from xmodal.datasets.phrases import EntitiesDataset, PhraseListDataset
from xmodal.datasets.precomp import PrecompDataset
from xmodal.datasets.reasoning import (
    REASONING_CLASSES,
    AlbefReasoningDataset,
    Nlvr2Dataset,
    NlvrDataset,
)
from xmodal.datasets.referring import AlbefReferringDataset, ReferDataset
from xmodal.datasets.region_store import RegionStore
from xmodal.datasets.streaming import WebDatasetShards
from xmodal.datasets.visual_genome import VisualGenomeQuestionDataset
from xmodal.datasets.vqa import AlbefVqaDataset, VqaDataset

__all__ = [
    'ENTAILMENT_CLASSES',
    'REASONING_CLASSES',
    'AlbefEntailmentDataset',
    'AlbefJsonDataset',
    'AlbefReasoningDataset',
    'AlbefReferringDataset',
    'AlbefVqaDataset',
    'CaptionDataset',
    'ClassFolderDataset',
    'CocoCaptionDataset',
    'EntitiesDataset',
    'GqaDataset',
    'InstanceDataset',
    'WeightedConcatDataset',
    'KarpathyDataset',
    'LxmertPretrainDataset',
    'LxmertQuestionDataset',
    'LxmertReasoningDataset',
    'Nlvr2Dataset',
    'NlvrDataset',
    'PhraseListDataset',
    'PrecompDataset',
    'ReferDataset',
    'RegionStore',
    'SnliVeDataset',
    'VisualGenomeQuestionDataset',
    'VqaDataset',
    'WebDatasetShards',
    'samplers',
    'stack_images',
    'stack_regions',
    'transforms',
]
