# What the data loaders of most datasets share. Images or regions are stacked into batches by four
# worker processes, those of small sets by one. A dataset adds the size of a batch and itself:
#   train_dataloader = dict(_base_.image_loaders.train, global_batch_size=…, dataset=…)
image_loaders = dict(
    train=dict(
        num_workers=4,
        persistent_workers=True,
        pin_memory=True,
        drop_last=True,
        sampler=dict(type='EpochSampler'),
        collate_fn=dict(type='xmodal.stack_images'),
    ),
    test=dict(
        num_workers=4,
        sampler=dict(type='DefaultSampler', shuffle=False, round_up=False),
        collate_fn=dict(type='xmodal.stack_images'),
    ),
)
small_image_loaders = dict(
    train=dict(
        num_workers=1,
        persistent_workers=True,
        drop_last=True,
        sampler=dict(type='EpochSampler'),
        collate_fn=dict(type='xmodal.stack_images'),
    ),
    test=dict(image_loaders['test'], num_workers=1),
)
region_loaders, small_region_loaders = (
    {
        split: dict(loader, collate_fn=dict(type='xmodal.stack_regions'))
        for split, loader in loaders.items()
    }
    for loaders in (image_loaders, small_image_loaders)
)
