# ALBEF's momentum distillation: the share of the momentum teacher's soft targets rises to 0.4 over
# the first epoch.
momentum_distillation = dict(type='MomentumDistillationHook', alpha=0.4, ramp_epochs=1)
