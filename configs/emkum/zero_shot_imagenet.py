# ImageNet alone, zero-shot: `python tools/test.py configs/emkum/zero_shot_imagenet.py CHECKPOINT`
# Other classes: test_cfg.dataloader.dataset.data_root and .class_names.
_base_ = './tte_post_coco_cc.py'

test_cfg = dict(_delete_=True, **_base_.zero_shot)
