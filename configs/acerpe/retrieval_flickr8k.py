# Retrieval on your own Flickr8k, fine-tuned from pretrain_flickr8k.py: minutes on two CPU cores.
# Tested on the 1,000 photographs of its dev part.
_base_ = [
    '../_base_/models/acerpe_photographs.py',
    '../_base_/datasets/flickr8k.py',
    '../_base_/schedules/finetune_photographs.py',
    '../_base_/default_runtime.py',
]

# An epoch shows every photograph with a caption drawn. Where there is time for five times as many
# iterations, dataset.captions='each' shows all captions, those of a photograph as positives of each
# other.
train_dataloader = dict(global_batch_size=32)
val_dataloader = None  # dev is the test
val_evaluator = None
val_cfg = None

# As in pre-training, without masked language and image modelling.
model = dict(heads=dict(mlm=None, mim=None))
load_from = 'work_dirs/pretrain_flickr8k/epoch_12.pth'

train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=2)
