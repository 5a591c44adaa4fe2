# Minimal pairs of the embedded world, `python tools/make_shapes.py --out data/shapes`, in
# SugarCrepe's files: a caption, and the same with one thing wrong (chance 50 %, ceiling 100 %).
skills = dict(
    type='MinimalPairLoop',
    dataloader=dict(
        batch_size=100,
        num_workers=1,
        sampler=dict(type='DefaultSampler', shuffle=False, round_up=False),
        collate_fn=dict(type='xmodal.stack_images'),
        dataset=dict(
            type='SugarCrepeDataset',
            data_root='data/shapes/skills',
            data_prefix=dict(image='images'),
            ann_file=[
                'attribute.json', 'relation.json', 'count.json', 'binding.json', 'object.json',
            ],
            pipeline=[
                dict(type='LoadImage'),
                dict(type='PackImageText', fields=('label', 'skill', 'pair_id', 'group')),
            ],
            test_mode=True,
        ),
    ),
    evaluator=dict(type='SkillMetric'),
)
