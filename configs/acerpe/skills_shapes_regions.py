# What pretrain_shapes_regions.py can tell apart, by vectors and by fusion.
_base_ = ['./pretrain_shapes_regions.py', '../_base_/datasets/skills_shapes.py']

regions = dict(type='LoadRegions', store='data/shapes/skills/store')
pack = dict(type='PackRegionText', fields=('label', 'skill', 'pair_id', 'group'))
test_cfg = dict(
    _delete_=True,
    **dict(
        _base_.skills,
        dataloader=dict(
            _base_.skills.dataloader,
            collate_fn=dict(type='xmodal.stack_regions'),
            dataset=dict(_base_.skills.dataloader.dataset, pipeline=[regions, pack]),
        ),
    ),
)
