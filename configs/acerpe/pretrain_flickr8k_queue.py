# The paper's contrast on photographs: ITC against a queue of a momentum teacher's embeddings, with
# its soft targets, between the frozen encoders of pretrain_flickr8k_names.py; captions alone. The
# table acerpe/photographs_objective compares.
#   python tools/train.py configs/acerpe/pretrain_flickr8k_queue.py
_base_ = ['./pretrain_flickr8k_names.py', '../_base_/momentum_distillation.py']

model = dict(
    queue_length=2048,  # the last eight batches, over which the teacher follows
    momentum=0.9,
)
train_dataloader = dict(
    dataset=dict(ann_file=['flickr8k/albef/train.json'], pipeline=_base_.pipeline)
)
custom_hooks = [_base_.momentum_distillation]
