# What the ablations of ACE-RPE share: rows that several tables have, and the stages of each preset,
# pre-training first. A row's override is merged into the config of each stage, restricted to the
# keys that the stage `takes`.
group = 'acerpe'
reference = 'ace_rpe_lace'  # the method; rows whose configs equal its configs share its runs

# Tables 1 and 2: the position inside the fusion encoder. Only ace_rpe_lace, "ACE-RPE + L_ace", has
# the anchor loss; it is the configs as they are and overrides nothing.
# ALBEF's ITC in the place of L_ace; _delete_ replaces the ITC that a config has, or its None.
without_lace = dict(itc=dict(type='ITCHead'), ace=None)
overrides = dict(
    # "None": no position in the fusion encoder.
    none=dict(
        model=dict(
            backbone=dict(position=dict(_delete_=True, type='NoPosition')), heads=without_lace
        )
    ),
    # "APE": absolute embeddings, separate ones for each modality.
    ape=dict(
        model=dict(
            backbone=dict(position=dict(_delete_=True, type='AbsolutePosition')), heads=without_lace
        )
    ),
    # "RPE": relative biases, separate ones for each modality.
    rpe=dict(
        model=dict(
            backbone=dict(position=dict(_delete_=True, type='RelativePosition')), heads=without_lace
        )
    ),
    # "APE + RPE": absolute and relative, separate ones for each modality.
    ape_rpe=dict(
        model=dict(
            backbone=dict(position=dict(_delete_=True, type='AbsoluteRelativePosition')),
            heads=without_lace,
        )
    ),
    # "Uniform": one distance for all words and patches, no anchors.
    uniform=dict(
        model=dict(backbone=dict(position=dict(type='UniformPosition')), heads=without_lace)
    ),
    # "ACE-RPE": the position without the anchor loss.
    ace_rpe=dict(model=dict(heads=without_lace)),
)

position = ['model.backbone.position']
# W of Eq. 8 in another shape than that of the contrastive stage of `shapes`, which has not trained
# it: the row's pre-training starts with its own.
own_w = ['backbone.position.weight']
pre_training = ['model', 'load_from_ignore']
configs = 'configs/acerpe/'
presets = {
    # The embedded world: pretrain_shapes.py in its two parts. The first has no fusion and hence
    # nothing that a row could change, so that all rows of a seed start from the same weights.
    # retrieval_shapes.py and grounding_shapes.py fine-tune with ITC and L_ace whatever the row.
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
                config=configs + 'pretrain_shapes.py', after='contrast', takes=pre_training,
                options={
                    'custom_hooks': [], 'train_cfg.max_epochs': 2,
                    'optim_wrapper.optimizer.lr': 5e-4, 'param_scheduler.1.begin': 0,
                },
            ),
            skills=dict(tests='pretrain', config=configs + 'skills_shapes.py'),
            # An epoch of one caption a scene: a fifth of what retrieval_shapes.py takes.
            retrieval=dict(
                config=configs + 'retrieval_shapes.py', after='pretrain', takes=position,
                options={
                    'train_cfg.max_epochs': 1, 'train_dataloader.dataset.captions': 'sample',
                },
            ),
            # Two epochs of the tasks, which take five to eight alone.
            snli_ve=dict(
                config=configs + 'snli_ve_shapes.py', after='pretrain', takes=position,
                options={'train_cfg.max_epochs': 2},
            ),
            nlvr2=dict(
                config=configs + 'nlvr2_shapes.py', after='pretrain', takes=position,
                options={'train_cfg.max_epochs': 2},
            ),
            vqa=dict(
                config=configs + 'vqa_shapes.py', after='pretrain', takes=position,
                options={'train_cfg.max_epochs': 2},
            ),
            grounding=dict(
                config=configs + 'grounding_shapes.py', after='pretrain', takes=position
            ),
        ),
    ),
    # The paper's: 4.0M images, 8 A100s.
    '4m': dict(
        label='on the benchmarks, pre-trained on 4M images',
        gpus=8,  # A100 (Sec. 4.1)
        stages=dict(
            pretrain=dict(config=configs + 'pretrain_4m.py', takes=pre_training),
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
            snli_ve_dev=dict(
                tests='snli_ve',
                options={'test_dataloader.dataset.ann_file': 'snli_ve/snli_ve_dev.jsonl'},
            ),
            nlvr2_ta=dict(config=configs + 'nlvr2_ta.py', after='pretrain', takes=position),
            nlvr2=dict(config=configs + 'nlvr2.py', after='nlvr2_ta', takes=position),
            nlvr2_dev=dict(
                tests='nlvr2', options={'test_dataloader.dataset.ann_file': 'nlvr2/dev.json'}
            ),
            # Only VQA's server has the answers of test-dev and test-std. This is trained without
            # val and tested on it; vqa_v2.py, trained on both, writes the file for the server.
            vqa=dict(config=configs + 'vqa_v2_val.py', after='pretrain', takes=position),
            # Fine-tuned as retrieval.
            grounding=dict(
                config=configs + 'grounding_refcoco_plus.py', after='pretrain',
                takes=[*position, 'model.heads'],
            ),
        ),
    ),
}
# The rows with a star: pre-trained on CC12M, too. Text assignment keeps the 4M images (ALBEF).
presets['14m'] = dict(
    label='on the benchmarks, pre-trained on 14M images',
    gpus=8,
    stages=dict(
        presets['4m']['stages'],
        pretrain=dict(config=configs + 'pretrain_14m.py', takes=pre_training),
    ),
)
