# What every run shares. A config changes a hook by its name: default_hooks=dict(checkpoint=…).
default_scope = 'xmodal'
runner_type = 'XModalRunner'

default_hooks = dict(
    runtime_info=dict(type='RuntimeInfoHook'),
    timer=dict(type='IterTimerHook'),
    sampler_seed=dict(type='DistSamplerSeedHook'),
    logger=dict(type='LoggerHook', interval=50),  # losses, learning rate, memory, ETA
    param_scheduler=dict(type='ParamSchedulerHook'),
    checkpoint=dict(type='ExactCheckpointHook', interval=1, max_keep_ckpts=2),
    reproducible=dict(type='IterationSeedHook'),
    non_finite=dict(type='NonFiniteHook', limit=3),
    broken_images=dict(type='BrokenImageHook', limit=0.001),
    preemption=dict(type='PreemptionHook'),
)
custom_hooks = []

env_cfg = dict(
    cudnn_benchmark=False,
    mp_cfg=dict(mp_start_method='fork', opencv_num_threads=0),
    dist_cfg=dict(backend='nccl'),
)
randomness = dict(seed=42)
visualizer = dict(type='Visualizer', vis_backends=[dict(type='LocalVisBackend')])
log_processor = dict(by_epoch=True, window_size=50)
log_level = 'INFO'
load_from = None
resume = False
