# T-EMDE / SGR on Flickr30K (Sec. 4.3; Table 2): 1K test.
# `python tools/train.py configs/temde/sgr_temde_f30k.py`
_base_ = [
    '../_base_/models/sgraf.py',
    '../_base_/datasets/f30k_precomp.py',
    '../_base_/schedules/sgraf.py',
    '../_base_/default_runtime.py',
]

model = dict(
    data_preprocessor=dict(tokenizer=dict(vocabulary='data/f30k_precomp/vocab.json')),
    similarity=dict(
        # With node 0 at full size SGR does not learn (docs/temde.md).
        global_pooling=dict(pooling=dict(partitions=16), layer_scale=0.01),
        reasoning=dict(type='SGR'),
    ),
)
train_cfg = dict(max_epochs=40)
param_scheduler = [dict(type='StepLR', gamma=0.1, step_size=30)]
custom_hooks = [dict(type='CollapseHook')]
default_hooks = dict(checkpoint=dict(save_best='rsum', rule='greater'))
