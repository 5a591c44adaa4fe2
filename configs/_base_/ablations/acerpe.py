# What the ablations of ACE-RPE share: the stages of each preset, pre-training first. A variant is
# laid over a stage with the keys that the stage `takes`, and no others.
group = 'acerpe'
reference = 'ace_rpe_lace'  # the method; rows that come to its configs share its runs

position = ['model.backbone.position']
configs = 'configs/acerpe/'
presets = {
    # The embedded world: pretrain_shapes.py in its two parts. The first has no fusion and hence
    # nothing that a row could change, so that a seed's rows all go on from the same weights.
    # retrieval_shapes.py fine-tunes with ITC whatever the row.
    'shapes': dict(
        label='on the embedded world',
        stages=dict(
            contrast=dict(
                config=configs + 'pretrain_shapes.py', takes=[],
                options={
                    'model.heads': dict(ace=None, itm=None, mlm=None, mim=None),
                    'custom_hooks': [], 'train_cfg.max_epochs': 6,
                },
            ),
            pretrain=dict(
                config=configs + 'pretrain_shapes.py', after='contrast', takes=['model'],
                options={
                    'custom_hooks': [], 'train_cfg.max_epochs': 3,
                    'optim_wrapper.optimizer.lr': 5e-4, 'param_scheduler.1.begin': 0,
                },
            ),
            # Two epochs of one caption a scene: two fifths of what retrieval_shapes.py takes.
            retrieval=dict(
                config=configs + 'retrieval_shapes.py', after='pretrain', takes=position,
                options={
                    'train_cfg.max_epochs': 2, 'train_dataloader.dataset.captions': 'sample',
                },
            ),
            snli_ve=dict(config=configs + 'snli_ve_shapes.py', after='pretrain', takes=position),
            nlvr2=dict(config=configs + 'nlvr2_shapes.py', after='pretrain', takes=position),
            vqa=dict(config=configs + 'vqa_shapes.py', after='pretrain', takes=position),
        ),
    ),
    # The paper's: 4.0M images, 8 A100s.
    '4m': dict(
        label='on the benchmarks, pre-trained on 4M images',
        stages=dict(
            pretrain=dict(config=configs + 'pretrain_4m.py', takes=['model']),
            # Retrieval is fine-tuned with the contrastive loss of the pre-training.
            flickr30k=dict(
                config=configs + 'retrieval_flickr30k.py', after='pretrain',
                takes=[*position, 'model.heads'],
            ),
            coco=dict(
                config=configs + 'retrieval_coco.py', after='pretrain',
                takes=[*position, 'model.heads'],
            ),
            snli_ve=dict(config=configs + 'snli_ve.py', after='pretrain', takes=position),
            nlvr2_ta=dict(config=configs + 'nlvr2_ta.py', after='pretrain', takes=position),
            nlvr2=dict(config=configs + 'nlvr2.py', after='nlvr2_ta', takes=position),
            vqa=dict(config=configs + 'vqa_v2.py', after='pretrain', takes=position),
        ),
    ),
}
