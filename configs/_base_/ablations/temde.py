# What the tables of T-EMDE share: the trainings of each preset. A row's override is merged into the
# config of each stage, restricted to the keys that the stage `takes`. Self-attention depends on the
# number of regions, so the stages of the embedded world and of photographs have different names.
group = 'temde'
reference = 'temde'  # the method; rows whose configs equal its configs share its runs

# The rows of Tables 1 and 2; the last is the configs as they are. Self-attention is the paper's own
# training ("reproduced"); an image of the embedded world has 8 regions, a photograph 49 cells.
self_attention = dict(_delete_=True, type='SelfAttentionGlobal', regions=36)
self_attention_shapes, self_attention_grid = (
    dict(model=dict(similarity=dict(global_pooling=dict(self_attention, regions=regions))))
    for regions in (8, 49)
)
tables_1_and_2 = dict(
    noglobal=dict(override=dict(model=dict(similarity=dict(global_pooling=None))), label='none'),
    self_attention=dict(
        override=dict(model=dict(similarity=dict(global_pooling=self_attention))),
        stages=dict(
            saf_shapes=self_attention_shapes,
            sgr_shapes=self_attention_shapes,
            sgraf_shapes=self_attention_shapes,
            saf_grid=self_attention_grid,
            sgr_grid=self_attention_grid,
            sgraf_grid=self_attention_grid,
        ),
        label='self-attention',
    ),
    temde=dict(label='T-EMDE'),  # with N and K of Sec. 4.3
)

module = ['model.similarity.global_pooling']
pooling = [
    'model.similarity.image_pooling', 'model.similarity.text_pooling', 'find_unused_parameters',
]
configs = 'configs/temde/'
presets = {
    'shapes': dict(
        label='on the embedded world',
        stages=dict(
            saf_shapes=dict(config=configs + 'saf_temde_shapes.py', takes=module),
            sgr_shapes=dict(config=configs + 'sgr_temde_shapes.py', takes=module),
            sgraf_shapes=dict(
                config=configs + 'saf_temde_shapes.py', takes=module,
                ensemble=['saf_shapes', 'sgr_shapes'],
            ),
            dual=dict(config=configs + 'dual_mean_shapes.py', takes=pooling),
        ),
    ),
    'flickr8k': dict(
        label='on Flickr8k, the 1,000 photographs of dev',
        stages=dict(
            saf_grid=dict(config=configs + 'saf_temde_flickr8k.py', takes=module),
            sgr_grid=dict(config=configs + 'sgr_temde_flickr8k.py', takes=module),
            sgraf_grid=dict(
                config=configs + 'saf_temde_flickr8k.py', takes=module,
                ensemble=['saf_grid', 'sgr_grid'],
            ),
            dual=dict(
                config=configs + 'dual_flickr8k.py', takes=pooling,
                # two of its three epochs, for time; dev is the test
                options=dict(
                    train_cfg=dict(max_epochs=2),
                    val_dataloader=None, val_evaluator=None, val_cfg=None,
                ),
            ),
        ),
    ),
    'f30k': dict(
        label='on Flickr30K, 1K test',
        gpus=1,  # GeForce RTX 2080 Ti (Sec. 5.1)
        stages=dict(
            saf=dict(config=configs + 'saf_temde_f30k.py', takes=module),
            sgr=dict(config=configs + 'sgr_temde_f30k.py', takes=module),
            sgraf=dict(
                config=configs + 'saf_temde_f30k.py', takes=module, ensemble=['saf', 'sgr']
            ),
            dual=dict(config=configs + 'dual_gpo_f30k.py', takes=pooling),
        ),
    ),
    'coco': dict(
        label='on COCO, folds of 1K and 5K test',
        gpus=1,
        stages=dict(
            saf=dict(config=configs + 'saf_temde_coco.py', takes=module),
            sgr=dict(config=configs + 'sgr_temde_coco.py', takes=module),
            sgraf=dict(
                config=configs + 'saf_temde_coco.py', takes=module, ensemble=['saf', 'sgr']
            ),
        ),
    ),
}
