# Zero-shot classification of ImageNet's 50,000 validation images (chance: 0.1 % and 0.5 %):
#
#   data/imagenet/val/n01440764/*.JPEG …     a folder a class
#   data/imagenet/classes.json               1,000 names in the order of the sorted folders
#
# The names matter: the published figures are with those of OpenAI's CLIP notebook and its 80
# templates (`templates` takes a file of them), from which the ones shipped here differ. Images are
# squashed, not cropped, as published.
zero_shot = dict(
    type='ZeroShotLoop',
    dataloader=dict(
        batch_size=100,
        num_workers=4,
        sampler=dict(type='DefaultSampler', shuffle=False, round_up=False),
        collate_fn=dict(type='xmodal.stack_images'),
        dataset=dict(
            type='ClassFolderDataset',
            data_root='data/imagenet/val',
            class_names='data/imagenet/classes.json',
            pipeline=[
                dict(type='LoadImage'),
                dict(type='ResizeImage', size=224),
                dict(type='PackImageText', fields=('label',)),
            ],
        ),
    ),
    evaluator=dict(type='ZeroShotMetric'),
    templates='configs/_base_/prompts/photographs.json',
)
