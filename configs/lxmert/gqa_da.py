# gqa.py with data augmentation (Sec. 5.2, "DA"): questions of VQA and VG-QA are mixed in, those
# whose answer GQA's table has.
_base_ = './gqa.py'

work_dir = 'work_dirs/lxmert_gqa_da'
vqa_pipeline = [
    dict(type='LoadRegions', store='data/regions/mscoco'),
    dict(type='PackRegionText', fields=('answers', 'answer_weights')),
]
train_dataloader = dict(
    dataset=dict(
        _delete_=True,
        type='WeightedConcatDataset',
        datasets=[
            _base_.train_dataloader.dataset,
            dict(
                type='LxmertQuestionDataset',
                data_root='data/',
                ann_file=['vqa/train.json', 'vqa/nominival.json'],
                answer_list='gqa/trainval_label2ans.json',
                max_words=None,
                pipeline=vqa_pipeline,
            ),
            dict(
                type='VisualGenomeQuestionDataset',
                data_root='data/',
                ann_file='vg/question_answers.json',
                answer_list='gqa/trainval_label2ans.json',
                max_words=None,
                weights='score',  # 1 for its one answer
                pipeline=_base_.train_pipeline,
            ),
        ],
        weights=[1, 1, 1],  # the paper does not give the shares
    )
)
