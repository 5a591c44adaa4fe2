# LXMERT pre-training as the released code does it: of the masked regions 80 % hidden by zeros, 10 %
# replaced, 10 % kept; Huber's loss on features, classes of seen regions too, weighted by the
# detector's confidence, answers from the first epoch on. The weights that were published
# (model_LXRT.pth) come of a protocol slightly different from either.
_base_ = './pretrain.py'

work_dir = 'work_dirs/lxmert_pretrain_released'
model = dict(
    heads=dict(
        objects=dict(
            masking='bert', feature_loss='smooth_l1', label_scope='all', confidence_weight=True
        )
    )
)
custom_hooks = []
