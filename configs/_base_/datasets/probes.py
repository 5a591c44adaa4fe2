# Public minimal pairs and statements, in their own files (docs/tasks/skills.md):
#
#   data/sugarcrepe/{add,replace,swap}_*.json       data/coco/val2017/*.jpg
#   data/aro/visual_genome_{relation,attribution}.json, coco_order.json   data/aro/images/*.jpg
#   data/winoground/examples.jsonl                  data/winoground/images/*.png
#   data/vsr/random/test.jsonl                      data/vsr/images/*.jpg
probe_loader = dict(
    batch_size=64,
    num_workers=4,
    sampler=dict(type='DefaultSampler', shuffle=False, round_up=False),
    collate_fn=dict(type='xmodal.stack_images'),
)
probe_pipeline = [
    dict(type='LoadImage'),
    dict(type='ResizeImage', size=256),
    dict(type='PackImageText', fields=('label', 'skill', 'pair_id', 'group')),
]
probe_dataset = dict(data_root='data/', pipeline=probe_pipeline, test_mode=True)

sugarcrepe = dict(
    dataloader=dict(
        probe_loader,
        dataset=dict(
            probe_dataset,
            type='SugarCrepeDataset',
            data_prefix=dict(image='coco/val2017'),
            ann_file=[
                'sugarcrepe/replace_obj.json', 'sugarcrepe/replace_att.json',
                'sugarcrepe/replace_rel.json', 'sugarcrepe/swap_obj.json',
                'sugarcrepe/swap_att.json', 'sugarcrepe/add_obj.json', 'sugarcrepe/add_att.json',
            ],
        ),
    ),
    evaluator=dict(type='SkillMetric'),
)
aro_relation = dict(
    dataloader=dict(
        probe_loader,
        dataset=dict(
            probe_dataset,
            type='AroDataset',
            data_prefix=dict(image='aro/images'),
            ann_file='aro/visual_genome_relation.json',
            pipeline=[probe_pipeline[0], dict(type='CropBox'), *probe_pipeline[1:]],
        ),
    ),
    evaluator=dict(type='SkillMetric'),
)
aro_attribution = dict(
    aro_relation,
    dataloader=dict(
        aro_relation['dataloader'],
        dataset=dict(
            aro_relation['dataloader']['dataset'],
            ann_file='aro/visual_genome_attribution.json',
        ),
    ),
    evaluator=dict(type='SkillMetric', min_count=25),  # as ARO's script
)
aro_order = dict(
    dataloader=dict(
        probe_loader,
        dataset=dict(
            probe_dataset,
            type='AroOrderDataset',
            data_prefix=dict(image='coco'),
            ann_file='aro/coco_order.json',
        ),
    ),
    evaluator=dict(type='SkillMetric'),
)
winoground = dict(
    dataloader=dict(
        probe_loader,
        dataset=dict(
            probe_dataset,
            type='WinogroundDataset',
            data_prefix=dict(image='winoground/images'),
            ann_file='winoground/examples.jsonl',
        ),
    ),
    evaluator=dict(type='WinogroundMetric'),
)
vsr = dict(
    dataloader=dict(
        probe_loader,
        dataset=dict(
            probe_dataset,
            type='VsrDataset',
            data_prefix=dict(image='vsr/images'),
            ann_file='vsr/random/test.jsonl',
        ),
    ),
    evaluator=dict(type='StatementMetric'),
)
