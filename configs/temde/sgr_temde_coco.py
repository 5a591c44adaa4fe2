# T-EMDE / SGR on COCO (Sec. 4.3; Table 2; Table 1): tested on 1K folds and 5K.
# `python tools/train.py configs/temde/sgr_temde_coco.py`
_base_ = [
    '../_base_/models/sgraf.py',
    '../_base_/datasets/coco_precomp.py',
    '../_base_/schedules/sgraf.py',
    '../_base_/default_runtime.py',
]

model = dict(
    data_preprocessor=dict(tokenizer=dict(vocabulary='data/coco_precomp/vocab.json')),
    similarity=dict(
        # With node 0 at full size SGR does not learn (docs/temde.md).
        global_pooling=dict(pooling=dict(partitions=20), layer_scale=0.01),
        reasoning=dict(type='SGR'),
    ),
)
train_cfg = dict(max_epochs=20)
param_scheduler = [dict(type='StepLR', gamma=0.1, step_size=10)]
custom_hooks = [dict(type='CollapseHook')]
default_hooks = dict(checkpoint=dict(save_best='rsum', rule='greater'))
