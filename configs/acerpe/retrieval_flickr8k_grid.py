# Re-ranking above the vectors of pretrain_flickr8k_grid.py, which stay as they are: adapters are
# trained word by word, with cells of the grid as anchors, and a fusion encoder by ITM. Pairs are
# re-ranked by the logit of their vectors plus ITM's log-odds. Minutes on two CPU cores.
_base_ = './pretrain_flickr8k_grid.py'

model = dict(
    backbone=dict(
        frozen=['text_encoder', 'image_proj', 'text_proj'],
        position=dict(_delete_=True, type='AnchorRelativePosition', groups=4),
    ),
    heads=dict(
        itc=dict(frozen=True),
        anchors=dict(type='AnchorContrastHead', temperature=0.05),
        itm=dict(type='ITMHead', score='difference'),
    ),
)
load_from = 'work_dirs/pretrain_flickr8k_grid/epoch_3.pth'
train_dataloader = dict(global_batch_size=128)  # every word with every cell: 0.4 GB
train_cfg = dict(max_epochs=2)
optim_wrapper = dict(paramwise_cfg=dict(_delete_=True), optimizer=dict(lr=5e-4))
val_dataloader = None  # dev is the test
val_evaluator = None
val_cfg = None
test_cfg = dict(scorer=dict(topk=64))
