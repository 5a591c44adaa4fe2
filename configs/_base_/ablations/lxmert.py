# What the tables of LXMERT share: rows that several tables have, and the stages of each preset,
# pre-training first. A row's override is merged into the config of each stage, restricted to the
# keys that the stage `takes`. Stages "alone" start from random weights, "da" mix other questions
# into the fine-tuning.
group = 'lxmert'
reference = 'full'  # the method; rows whose configs equal its configs share its runs

# The row `full`, all five tasks (Tables 4 and 5, last rows), is the configs as they are and
# overrides nothing. At the paper's scale answers begin in the second half, on `shapes` at once.
overrides = dict(
    # Table 4, "P20": no answers to questions; the questions stay as sentences of the other tasks.
    p20=dict(model=dict(heads=dict(answers=None))),
    # Table 5, "No Vision Tasks": no region is hidden either; the paper does not say.
    no_vision=dict(model=dict(heads=dict(objects=None))),
)

configs = 'configs/lxmert/'
alone = {'load_from': None}
# The paper's dev sets: minival is 5,000 images of VQA's val, which LXMERT does not train on. The
# test sets of the configs have no labels (test2015), or are the paper's Table 2.
minival = {'test_dataloader.dataset.ann_file': 'vqa/minival.json'}
dev = {'test_dataloader.dataset.ann_file': 'nlvr2/dev.json'}
# At the paper's scale a model without pre-training is trained for longer (App. D: batches of 64 or
# 128), the warm-up as long a share.
epochs = 20
alone_longer = {
    **alone,
    'train_cfg.max_epochs': epochs,
    'train_dataloader.global_batch_size': 64,
    'optim_wrapper.optimizer.lr': 1e-4,
    'param_scheduler.0.end': 0.1 * epochs,
    'param_scheduler.1.begin': 0.1 * epochs,
}
plugins = ['model.backbone.position', 'model.backbone.token_type']
bert = ['model.backbone.text_encoder.pretrained']
tuned = [*plugins, 'model.data_preprocessor.only']  # what a fine-tuning takes after pre-training
fine_tuned = {
    'VQA': ('vqa', 'vqa/overall'),
    'GQA': ('gqa', 'gqa/accuracy'),
    'NLVR2': ('nlvr2', 'accuracy'),
}
presets = {
    'shapes': dict(
        label='on the embedded world',
        stages=dict(
            pretrain=dict(config=configs + 'pretrain_shapes.py', takes=['model.heads', *plugins]),
            vqa=dict(config=configs + 'vqa_shapes.py', after='pretrain', takes=tuned),
            gqa=dict(config=configs + 'gqa_shapes.py', after='pretrain', takes=tuned),
            nlvr2=dict(config=configs + 'nlvr2_shapes.py', after='pretrain', takes=tuned),
            vqa_da=dict(config=configs + 'vqa_da_shapes.py', after='pretrain', takes=plugins),
            gqa_da=dict(config=configs + 'gqa_da_shapes.py', after='pretrain', takes=plugins),
            vqa_alone=dict(config=configs + 'vqa_shapes.py', takes=plugins, options=alone),
            gqa_alone=dict(config=configs + 'gqa_shapes.py', takes=plugins, options=alone),
            nlvr2_alone=dict(config=configs + 'nlvr2_shapes.py', takes=plugins, options=alone),
        ),
    ),
    # The paper's: 180K images, 9.18M pairs.
    'full': dict(
        label='on the benchmarks',
        gpus=4,  # Titan Xp, ten days of pre-training
        stages=dict(
            pretrain=dict(config=configs + 'pretrain.py', takes=['model.heads', *bert, *plugins]),
            vqa=dict(
                config=configs + 'vqa_v2.py', after='pretrain', takes=tuned, options=minival
            ),
            gqa=dict(config=configs + 'gqa.py', after='pretrain', takes=tuned),
            nlvr2=dict(config=configs + 'nlvr2.py', after='pretrain', takes=tuned, options=dev),
            vqa_da=dict(
                config=configs + 'vqa_v2_da.py', after='pretrain', takes=plugins, options=minival
            ),
            gqa_da=dict(config=configs + 'gqa_da.py', after='pretrain', takes=plugins),
            vqa_alone=dict(
                config=configs + 'vqa_v2.py', takes=[*bert, *plugins],
                options={**alone_longer, **minival},
            ),
            gqa_alone=dict(
                config=configs + 'gqa.py', takes=[*bert, *plugins], options=alone_longer
            ),
            nlvr2_alone=dict(
                config=configs + 'nlvr2.py', takes=[*bert, *plugins],
                options={**alone_longer, **dev},
            ),
        ),
    ),
}
