# Zero-shot classification of photographs of flowers, five classes (chance: 20 %), as the published
# folders have them: data/zeroshot/flower_photos/{daisy,dandelion,roses,sunflowers,tulips}/*.jpg
zero_shot = dict(
    type='ZeroShotLoop',
    dataloader=dict(
        batch_size=100,
        num_workers=1,
        sampler=dict(type='DefaultSampler', shuffle=False, round_up=False),
        collate_fn=dict(type='xmodal.stack_images'),
        dataset=dict(
            type='ClassFolderDataset',
            data_root='data/zeroshot/flower_photos',
            class_names='configs/_base_/prompts/flower_names.json',
            pipeline=[
                dict(type='LoadImage'),
                dict(type='ResizeImage', size=112),
                dict(type='PackImageText', fields=('label',)),
            ],
        ),
    ),
    evaluator=dict(type='ZeroShotMetric'),
    templates='configs/_base_/prompts/photographs.json',
)
