# The paper's whole objective on the embedded world, as Sec. 4.1 and Eqs. 1-2 have it: L_ace with
# λ = 2 and no ITC, MLM, MIM from the fusion encoder, ITM, a queue and a momentum teacher, all from
# the first step. The encoders start from weights, as in the paper: those of six epochs of ITC.
#   python tools/train.py --row acerpe/objective:paper:contrast
#   python tools/train.py --row acerpe/objective:paper
# pretrain_shapes.py has what learns more here; `python tools/ablate.py acerpe/objective` compares.
_base_ = './pretrain_shapes.py'

model = dict(
    heads=dict(
        itc=None,
        ace=dict(scale=2.0, token_scale=2.0, margin=0.05),
        itm=dict(hardness=1.0),
        mim=dict(source='fusion'),
    ),
    queue_length=512,  # of 40,000 pairs as many as 65,536 are of the paper's 5.1M
    momentum=0.995,
)
train_cfg = dict(max_epochs=6)  # 750 steps; the teacher follows over some 200
custom_hooks = [dict(type='MomentumDistillationHook', alpha=0.4, ramp_epochs=1)]
optim_wrapper = dict(optimizer=dict(lr=5e-4))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.02, by_epoch=False, end=50),
    dict(type='CosineAnnealingLR', eta_min=1e-5, by_epoch=True, convert_to_iter_based=True),
]
