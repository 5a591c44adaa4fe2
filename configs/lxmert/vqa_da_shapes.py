# vqa_shapes.py with data augmentation: GQA's questions are mixed in, those whose answer VQA's table
# has.
_base_ = './vqa_shapes.py'

work_dir = 'work_dirs/lxmert_vqa_da_shapes'
train_dataloader = dict(
    dataset=dict(
        _delete_=True,
        type='WeightedConcatDataset',
        datasets=[
            _base_.train_dataloader.dataset,
            dict(
                type='GqaDataset',
                data_root=_base_.data_root,
                ann_file='gqa/train_balanced_questions.json',
                answer_list='vqa/answer_list.json',
                pipeline=_base_.train_pipeline,
            ),
        ],
        weights=[1, 1],  # the paper does not give the shares
    )
)
