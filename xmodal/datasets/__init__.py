"""Readers of the benchmarks' formats, and the samplers, transforms and collate functions."""

import lazy_loader

# Imported when they are used: converters use a few modules, and those need no PyTorch.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=['samplers', 'transforms'],
    submod_attrs={
        'captions': ['AlbefJsonDataset', 'CaptionDataset', 'CocoCaptionDataset', 'KarpathyDataset'],
        'class_folders': ['ClassFolderDataset'],
        'collate': ['stack_images', 'stack_regions'],
        'concat': ['WeightedConcatDataset'],
        'entailment': ['ENTAILMENT_CLASSES', 'AlbefEntailmentDataset', 'SnliVeDataset'],
        'gqa': ['GqaDataset'],
        'index': ['Entry'],
        'instances': ['InstanceDataset'],
        'lxmert': ['LxmertPretrainDataset', 'LxmertQuestionDataset', 'LxmertReasoningDataset'],
        'minimal_pairs': [
            'AroDataset',
            'AroOrderDataset',
            'SugarCrepeDataset',
            'VsrDataset',
            'WinogroundDataset',
        ],
        'phrases': ['EntitiesDataset', 'PhraseListDataset'],
        'precomp': ['PrecompDataset'],
        'reasoning': ['REASONING_CLASSES', 'AlbefReasoningDataset', 'Nlvr2Dataset', 'NlvrDataset'],
        'referring': ['AlbefReferringDataset', 'ReferDataset'],
        'records': ['RecordDataset'],
        'region_store': ['RegionStore'],
        'streaming': ['WebDatasetShards'],
        'visual_genome': ['VisualGenomeQuestionDataset'],
        'vqa': ['AlbefVqaDataset', 'VqaDataset'],
    },
)
