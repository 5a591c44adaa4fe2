# Table 5 (Sec. 5.3): the vision tasks of the pre-training, dev sets.
_base_ = '../../_base_/ablations/lxmert.py'

title = 'LXMERT, Table 5: vision tasks of the pre-training'

columns = {'shapes': _base_.fine_tuned, 'full': _base_.fine_tuned}

paper_columns = ['VQA dev', 'GQA dev', 'NLVR2 dev']
rows = dict(
    no_vision=dict(
        override=_base_.overrides.no_vision, label='No Vision Tasks', paper=[66.3, 57.1, 50.9]
    ),
    # RoI-feature regression alone.
    feat=dict(
        override=dict(model=dict(heads=dict(objects=dict(tasks=['features'])))),
        label='Feat',
        paper=[69.2, 59.5, 72.9],
    ),
    # Detected-label classification alone.
    label=dict(
        override=dict(model=dict(heads=dict(objects=dict(tasks=['objects', 'attributes'])))),
        label='Label',
        paper=[69.5, 59.3, 73.5],
    ),
    full=dict(label='Feat + Label', paper=[69.9, 60.0, 74.9]),
)
