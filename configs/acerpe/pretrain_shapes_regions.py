# ACE-RPE on regions of the embedded world, where fusion learns relations: the tokens of regions
# enter it with their coordinates, MLM predicts directions, and ITM sees them turned around. It
# starts from contrast_shapes_regions.py. None of it is in the paper.
_base_ = './contrast_shapes_regions.py'

opposites = [('left', 'right'), ('above', 'below'), ('over', 'under')]
directions = ['left', 'right', 'above', 'below', 'over', 'under']
model = dict(
    heads=dict(
        itm=dict(_delete_=True, type='WordSwapITMHead', opposites=opposites, hardness=0.1),
        mlm=dict(_delete_=True, type='MLMHead', focus=directions),
    ),
)
load_from = 'work_dirs/contrast_shapes_regions/epoch_2.pth'
train_cfg = dict(max_epochs=6)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.02, by_epoch=False, end=50),
    dict(
        type='CosineAnnealingLR', eta_min=1e-5, begin=5, by_epoch=True,
        convert_to_iter_based=True,
    ),
]
find_unused_parameters = False
