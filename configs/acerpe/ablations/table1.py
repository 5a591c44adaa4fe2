# Table 1 (Sec. 4.3): the position inside the fusion encoder, image-text retrieval. Table 3 repeats
# the last two rows.
_base_ = '../../_base_/ablations/acerpe.py'

title = 'ACE-RPE, Table 1: cross-modal position, image-text retrieval'

benchmarks = {
    'F30K TR@1': ('flickr30k', 'i2t/R@1'),
    'F30K TR@5': ('flickr30k', 'i2t/R@5'),
    'F30K TR@10': ('flickr30k', 'i2t/R@10'),
    'F30K IR@1': ('flickr30k', 't2i/R@1'),
    'F30K IR@5': ('flickr30k', 't2i/R@5'),
    'F30K IR@10': ('flickr30k', 't2i/R@10'),
    'COCO TR@1': ('coco', 'i2t/R@1'),
    'COCO TR@5': ('coco', 'i2t/R@5'),
    'COCO TR@10': ('coco', 'i2t/R@10'),
    'COCO IR@1': ('coco', 't2i/R@1'),
    'COCO IR@5': ('coco', 't2i/R@5'),
    'COCO IR@10': ('coco', 't2i/R@10'),
}
columns = {
    'shapes': {
        'TR@1': ('retrieval', 'i2t/R@1'),
        'TR@5': ('retrieval', 'i2t/R@5'),
        'TR@10': ('retrieval', 'i2t/R@10'),
        'IR@1': ('retrieval', 't2i/R@1'),
        'IR@5': ('retrieval', 't2i/R@5'),
        'IR@10': ('retrieval', 't2i/R@10'),
    },
    '4m': benchmarks,
    '14m': benchmarks,
}

# Flickr30K 1K test set, then MS-COCO 5K test set; pre-trained on 4M images, but for the last row.
paper_columns = [
    'F30K TR@1', 'F30K TR@5', 'F30K TR@10', 'F30K IR@1', 'F30K IR@5', 'F30K IR@10',
    'COCO TR@1', 'COCO TR@5', 'COCO TR@10', 'COCO IR@1', 'COCO IR@5', 'COCO IR@10',
]
rows = dict(
    none=dict(
        override=_base_.overrides.none,
        label='None',
        paper=[94.3, 99.5, 99.8, 83.0, 96.8, 98.4, 72.6, 91.2, 95.7, 56.5, 81.3, 89.1],
    ),
    ape=dict(
        override=_base_.overrides.ape,
        label='APE',
        paper=[94.5, 99.6, 99.9, 83.2, 97.0, 98.4, 73.0, 91.3, 95.8, 56.7, 81.5, 89.2],
    ),
    rpe=dict(
        override=_base_.overrides.rpe,
        label='RPE',
        paper=[94.4, 99.5, 99.9, 83.2, 97.1, 98.4, 73.2, 91.4, 95.9, 56.7, 81.7, 89.3],
    ),
    ape_rpe=dict(
        override=_base_.overrides.ape_rpe,
        label='APE + RPE',
        paper=[94.5, 99.6, 99.9, 83.3, 97.2, 98.5, 73.2, 91.5, 96.0, 56.9, 81.8, 89.3],
    ),
    uniform=dict(
        override=_base_.overrides.uniform,
        label='Uniform',
        paper=[94.6, 99.6, 99.9, 83.3, 97.3, 98.5, 73.3, 91.6, 96.0, 56.9, 81.9, 89.4],
    ),
    ace_rpe=dict(
        override=_base_.overrides.ace_rpe,
        label='ACE-RPE',
        paper=[95.2, 99.6, 99.9, 83.5, 97.3, 98.6, 73.9, 92.0, 96.5, 57.6, 82.0, 90.1],
    ),
    ace_rpe_lace=dict(
        label='ACE-RPE + L_ace',
        paper=[95.4, 99.7, 99.9, 84.0, 97.6, 98.9, 74.2, 92.2, 96.8, 57.9, 82.4, 90.2],
    ),
    ace_rpe_lace_14m=dict(
        preset='14m',
        label='ACE-RPE + L_ace, 14M',
        paper=[96.7, 99.9, 100.0, 87.0, 97.8, 99.1, 78.9, 95.2, 97.7, 61.4, 85.3, 91.0],
    ),
)
