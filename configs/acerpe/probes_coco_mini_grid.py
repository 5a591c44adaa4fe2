# SugarCrepe's minimal pairs and VSR's statements about a few photographs of COCO, by the vectors
# and by the fusion encoder of retrieval_flickr8k_grid.py, which has not seen these photographs:
#   python tools/test.py configs/acerpe/probes_coco_mini_grid.py \
#       work_dirs/retrieval_flickr8k_grid/epoch_2.pth
# data/coco_mini has, of SugarCrepe's files and of VSR's, the lines whose photograph is there.
_base_ = [
    '../_base_/models/photographs_grid.py',
    '../_base_/datasets/probes.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(position=dict(type='AnchorRelativePosition', groups=4)),
    heads=dict(itc=dict(type='ITCHead'), itm=dict(type='ITMHead', score='difference')),
)
photographs = dict(
    data_root='data/coco_mini/',
    data_prefix=dict(image='images'),
    pipeline=[
        dict(type='LoadRegions', store='data/coco_mini/lite0_lite2'),
        dict(type='PackRegionText', fields=('label', 'skill', 'pair_id', 'group')),
    ],
)
sugarcrepe, vsr = _base_.sugarcrepe, _base_.vsr
for loop in (sugarcrepe, vsr):
    loop.update(type='MinimalPairLoop')
    loop['dataloader'].update(collate_fn=dict(type='xmodal.stack_regions'))
    loop['dataloader']['dataset'].update(photographs)
vsr['dataloader']['dataset'].update(ann_file='vsr_mini.jsonl')
test_dataloader, test_evaluator = sugarcrepe['dataloader'], sugarcrepe['evaluator']
test_cfg = dict(type='CompositeEvalLoop', loops=dict(sugarcrepe=sugarcrepe, vsr=vsr))
