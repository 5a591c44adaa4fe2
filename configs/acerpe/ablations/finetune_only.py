# The paper's first limitation: ACE-RPE in fine-tuning alone, on a model pre-trained without it.
# No table of the paper; retrieval_coco_from_albef.py is the same from ALBEF's released weights.
_base_ = '../../_base_/ablations/acerpe.py'

title = 'ACE-RPE in pre-training, in fine-tuning, in both'

columns = {
    'shapes': {
        'TR@1': ('retrieval', 'i2t/R@1'),
        'IR@1': ('retrieval', 't2i/R@1'),
        'mean recall': ('retrieval', 'mean_recall'),
    },
    '4m': {
        'COCO TR@1': ('coco', 'i2t/R@1'),
        'COCO IR@1': ('coco', 't2i/R@1'),
        'mean recall': ('coco', 'mean_recall'),
    },
}

paper_columns = []
rows = dict(
    none=dict(override=_base_.overrides.none, label='neither'),
    # Pre-trained as the row `none`, fine-tuned as the row `ace_rpe`.
    finetuned=dict(
        stages=dict(contrast='none', pretrain='none', retrieval='ace_rpe', coco='ace_rpe'),
        label='fine-tuning',
    ),
    ace_rpe=dict(override=_base_.overrides.ace_rpe, label='both'),
)
