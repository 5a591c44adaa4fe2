# What the vectors of photographs are trained by, in two directions from ALBEF's ITC over a batch:
# the paper's queue and momentum teacher, and names of ImageNet's classes beside captions. MiniLM is
# frozen in all rows. No table of the paper.
group = 'acerpe_photographs_objective'
title = 'Photographs: the objective of the vectors'
reference = 'distillation'  # pretrain_flickr8k_queue.py

presets = {
    'flickr8k': dict(
        label='on Flickr8k and flowers, trained on Flickr8k',
        stages=dict(
            vectors=dict(
                config='configs/acerpe/pretrain_flickr8k_queue.py',
                takes=['model', 'custom_hooks', 'train_dataloader'],
            ),
        ),
    ),
}
columns = {
    'flickr8k': {
        'TR@1': ('vectors', 'retrieval/i2t/R@1'),
        'IR@1': ('vectors', 'retrieval/t2i/R@1'),
        'mean recall': ('vectors', 'retrieval/mean_recall'),
        'flowers': ('vectors', 'zero_shot/top1'),
    },
}
paper_columns = []

hard_targets = {'0': dict(alpha=0.0)}
itc = dict(model=dict(queue_length=0, momentum=None), custom_hooks=hard_targets)
names = dict(  # pretrain_flickr8k_names.py
    train_dataloader=dict(
        dataset=dict(
            ann_file=['flickr8k/albef/train.json', 'imagenet_names/train.json'],
            pipeline={'0': dict(store=['data/flickr8k/lite0', 'data/imagenet_names/regions'])},
        )
    )
)
rows = dict(
    itc=dict(override=itc, label='ITC over the batch'),
    queue=dict(
        override=dict(custom_hooks=hard_targets), label='ITC over a queue of a momentum teacher'
    ),
    distillation=dict(label='the same, with momentum distillation'),
    names=dict(
        override=dict(itc, **names),
        label="ITC over the batch, names of ImageNet's classes beside captions",
    ),
)
