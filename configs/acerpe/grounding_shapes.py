# Weakly supervised grounding on the embedded world, fine-tuned from pretrain_shapes.py as
# retrieval: scenes with expressions and no boxes. Minutes on two CPU cores.
_base_ = [
    '../_base_/models/acerpe_shapes.py',
    '../_base_/datasets/refcoco_plus_shapes.py',
    '../_base_/schedules/finetune_shapes_retrieval.py',
    '../_base_/default_runtime.py',
]

# As in pre-training, without masked language and image modelling.
model = dict(heads=dict(mlm=None, mim=None))
load_from = 'work_dirs/pretrain_shapes/epoch_9.pth'
