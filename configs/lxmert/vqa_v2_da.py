# vqa_v2.py with data augmentation (Sec. 5.2, "DA"): questions of GQA and VG-QA are mixed in, those
# whose answer VQA's table has.
_base_ = './vqa_v2.py'

work_dir = 'work_dirs/lxmert_vqa_v2_da'
# Half of Visual Genome's images, which are GQA's, are COCO's: those of minival are left out.
unseen = dict(image_data='vg/image_data.json', exclude='vqa/minival.json')
gqa_pipeline = [
    dict(type='LoadRegions', store='data/regions/vg_gqa'),
    dict(type='PackRegionText', fields=('answers', 'answer_weights')),
]
train_dataloader = dict(
    dataset=dict(
        _delete_=True,
        type='WeightedConcatDataset',
        datasets=[
            _base_.train_dataloader.dataset,
            dict(
                type='GqaDataset',
                data_root='data/',
                ann_file=['gqa/train_balanced_questions.json', 'gqa/val_balanced_questions.json'],
                answer_list='vqa/trainval_label2ans.json',
                max_words=None,
                **unseen,
                pipeline=gqa_pipeline,
            ),
            dict(
                type='VisualGenomeQuestionDataset',
                data_root='data/',
                ann_file='vg/question_answers.json',
                answer_list='vqa/trainval_label2ans.json',
                max_words=None,
                weights='score',  # 1 for its one answer
                **unseen,
                pipeline=gqa_pipeline,
            ),
        ],
        weights=[1, 1, 1],  # the paper does not give the shares
    )
)
