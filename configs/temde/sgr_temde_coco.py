# T-EMDE / SGR on COCO (Sec. 4.3; Table 2; Table 1): tested on 1K folds and 5K.
# `python tools/train.py configs/temde/sgr_temde_coco.py`
_base_ = './saf_temde_coco.py'

# With node 0 at full size SGR does not learn (docs/temde.md).
model = dict(
    similarity=dict(global_pooling=dict(layer_scale=0.01), reasoning=dict(type='SGR'))
)
