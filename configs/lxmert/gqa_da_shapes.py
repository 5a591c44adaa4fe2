# gqa_shapes.py with data augmentation: VQA's questions are mixed in, those whose answer GQA's table
# has.
_base_ = './gqa_shapes.py'

work_dir = 'work_dirs/lxmert_gqa_da_shapes'
train_dataloader = dict(
    dataset=dict(
        _delete_=True,
        type='WeightedConcatDataset',
        datasets=[
            _base_.train_dataloader.dataset,
            dict(
                type='VqaDataset',
                data_root=_base_.data_root,
                ann_file='vqa/questions_train.json',
                answer_file='vqa/annotations_train.json',
                image_info='coco/captions_train.json',
                weights='score',
                answer_list='gqa/answer_list.json',
                pipeline=_base_.train_pipeline,
            ),
        ],
        weights=[1, 1],  # the paper does not give the shares
    )
)
