# What the tables of T-EMDE share: the trainings of each preset. A variant is laid over a stage with
# the keys that the stage `takes`, and no others. Self-attention is tied to the number of regions,
# so that the embedded world has stages of its own.
group = 'temde'
reference = 'temde'  # the method; rows that come to its configs share its runs

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
        stages=dict(
            saf=dict(config=configs + 'saf_temde_coco.py', takes=module),
            sgr=dict(config=configs + 'sgr_temde_coco.py', takes=module),
            sgraf=dict(
                config=configs + 'saf_temde_coco.py', takes=module, ensemble=['saf', 'sgr']
            ),
        ),
    ),
}
