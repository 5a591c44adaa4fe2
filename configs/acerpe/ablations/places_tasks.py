# Does a position that tells words where they are help tasks? The rows of places.py, fine-tuned for
# questions, entailment and statements. Rows differ in the position alone. No table of the paper.
_base_ = './places.py'

title = 'The position of the fusion encoder, where places count: VQA, SNLI-VE and NLVR2'

tuned = dict(after='pretrain', takes=['model.backbone.position'])
configs = 'configs/acerpe/'
presets = dict(
    shapes=dict(
        stages=dict(
            vqa=dict(tuned, config=configs + 'vqa_shapes_anchored.py'),
            snli_ve=dict(tuned, config=configs + 'snli_ve_shapes_anchored.py'),
            nlvr2=dict(tuned, config=configs + 'nlvr2_shapes_anchored.py'),
        ),
    ),
)
columns = {
    'shapes': {
        '_delete_': True,
        'relation': ('skills', 'fusion/relation'),
        'VQA': ('vqa', 'vqa/overall'),
        'VQA, yes/no': ('vqa', 'vqa/yes/no'),
        'VQA, number': ('vqa', 'vqa/number'),
        'VQA, other': ('vqa', 'vqa/other'),
        'SNLI-VE': ('snli_ve', 'accuracy'),
        'NLVR2': ('nlvr2', 'accuracy'),
        'NLVR2, consistency': ('nlvr2', 'consistency'),
    },
}
