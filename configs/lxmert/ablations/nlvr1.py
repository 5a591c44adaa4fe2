# The position in LXMERT on NLVR's drawings, whose objects are regions with given boxes: four
# stages, from words to human statements (docs/tasks/reasoning.md). No table of the papers.
group = 'lxmert_nlvr1'
title = "LXMERT on NLVR's objects: the position"
reference = 'none'  # the configs as they are

position = ['model.backbone.position']
configs = 'configs/lxmert/nlvr1_'
presets = {
    'nlvr1': dict(
        label='on the 5,934 drawings of dev',
        stages=dict(
            words=dict(config=configs + 'words.py', takes=position),
            boxes=dict(config=configs + 'boxes.py', after='words', takes=position),
            statements=dict(config=configs + 'statements.py', after='boxes', takes=position),
            human=dict(config=configs + 'regions.py', after='statements', takes=position),
        ),
    ),
}
columns = {
    'nlvr1': {
        'accuracy': ('human', 'accuracy'),
        'consistency': ('human', 'consistency'),
    },
}
paper_columns = []

# Four groups: the tokens are 64 wide.
rows = dict(
    none=dict(label='none'),
    uniform=dict(
        override=dict(model=dict(backbone=dict(position=dict(type='UniformPosition', groups=4)))),
        label='uniform',
    ),
    ace_rpe=dict(
        override=dict(
            model=dict(backbone=dict(position=dict(type='AnchorRelativePosition', groups=4)))
        ),
        label='ACE-RPE',
    ),
)
