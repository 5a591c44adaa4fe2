# What the tables of T-EMDE share: the trainings of each preset. A row's override is merged into the
# config of each stage, restricted to the keys that the stage `takes`. Self-attention depends on the
# number of regions, so the stages of the embedded world have different names.
group = 'temde'
reference = 'temde'  # the method; rows whose configs equal its configs share its runs

# The rows of Tables 1 and 2; the last is the configs as they are. Self-attention is the paper's own
# training ("reproduced"); the embedded world has 8 regions an image.
self_attention = dict(_delete_=True, type='SelfAttentionGlobal', regions=36)
self_attention_shapes = dict(
    model=dict(similarity=dict(global_pooling=dict(self_attention, regions=8)))
)
tables_1_and_2 = dict(
    noglobal=dict(override=dict(model=dict(similarity=dict(global_pooling=None))), label='none'),
    self_attention=dict(
        override=dict(model=dict(similarity=dict(global_pooling=self_attention))),
        stages=dict(
            saf_shapes=self_attention_shapes,
            sgr_shapes=self_attention_shapes,
            sgraf_shapes=self_attention_shapes,
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
