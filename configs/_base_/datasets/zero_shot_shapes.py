# Zero-shot classification in the embedded world: images of one object, a class is a colour and a
# shape, 128 in all (chance: 0.8 % and 3.9 %).
zero_shot = dict(
    type='ZeroShotLoop',
    dataloader=dict(
        batch_size=100,
        num_workers=1,
        sampler=dict(type='DefaultSampler', shuffle=False, round_up=False),
        collate_fn=dict(type='xmodal.stack_images'),
        dataset=dict(
            type='ClassFolderDataset',
            data_root='data/shapes/classes/images',
            class_names='data/shapes/classes/class_names.json',
            pipeline=[
                dict(type='LoadImage'),
                dict(type='PackImageText', fields=('label',)),
            ],
        ),
    ),
    evaluator=dict(type='ZeroShotMetric'),
    templates='configs/_base_/prompts/shapes.json',
)
