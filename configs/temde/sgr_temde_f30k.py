# T-EMDE / SGR on Flickr30K (Sec. 4.3; Table 2): 1K test.
# `python tools/train.py configs/temde/sgr_temde_f30k.py`
_base_ = './saf_temde_f30k.py'

# With node 0 at full size SGR does not learn (docs/temde.md).
model = dict(
    similarity=dict(global_pooling=dict(layer_scale=0.01), reasoning=dict(type='SGR'))
)
train_cfg = dict(max_epochs=40)
param_scheduler = [dict(type='StepLR', gamma=0.1, step_size=30)]
