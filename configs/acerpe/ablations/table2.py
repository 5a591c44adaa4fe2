# Table 2 (Sec. 4.3): the position inside the fusion encoder, VQA, entailment and reasoning. Table 4
# repeats the last three rows.
_base_ = '../../_base_/ablations/acerpe.py'

title = 'ACE-RPE, Table 2: cross-modal position, VQA, SNLI-VE and NLVR2'

# The paper's VQA is of test-dev and test-std, which only its server scores (docs/tasks/vqa.md).
benchmarks = {
    'VQA val': ('vqa', 'vqa/overall'),
    'SNLI-VE dev': ('snli_ve_dev', 'accuracy'),
    'SNLI-VE test': ('snli_ve', 'accuracy'),
    'NLVR2 dev': ('nlvr2_dev', 'accuracy'),
    'NLVR2 test': ('nlvr2', 'accuracy'),
}
columns = {
    'shapes': {
        'VQA': ('vqa', 'vqa/overall'),
        'SNLI-VE': ('snli_ve', 'accuracy'),
        'NLVR2': ('nlvr2', 'accuracy'),
    },
    '4m': benchmarks,
    '14m': benchmarks,
}

paper_columns = [
    'VQA dev', 'VQA std', 'SNLI-VE dev', 'SNLI-VE test', 'NLVR2 dev', 'NLVR2 test',
]
rows = dict(
    none=dict(
        override=_base_.overrides.none,
        label='None',
        paper=[73.2, 73.6, 79.2, 79.5, 79.9, 80.5],
    ),
    ape=dict(
        override=_base_.overrides.ape,
        label='APE',
        paper=[73.9, 74.1, 80.2, 80.7, 80.6, 81.0],
    ),
    rpe=dict(
        override=_base_.overrides.rpe,
        label='RPE',
        paper=[73.8, 73.9, 79.4, 79.6, 80.3, 80.7],
    ),
    ape_rpe=dict(
        override=_base_.overrides.ape_rpe,
        label='APE + RPE',
        paper=[73.9, 74.1, 80.1, 80.9, 80.5, 80.8],
    ),
    uniform=dict(
        override=_base_.overrides.uniform,
        label='Uniform',
        paper=[74.1, 74.2, 80.3, 81.0, 80.5, 80.9],
    ),
    ace_rpe=dict(
        override=_base_.overrides.ace_rpe,
        label='ACE-RPE',
        paper=[74.9, 75.1, 81.1, 81.4, 81.3, 81.7],
    ),
    ace_rpe_lace=dict(label='ACE-RPE + L_ace', paper=[75.4, 75.7, 81.4, 82.0, 81.7, 81.9]),
    ace_rpe_lace_14m=dict(
        preset='14m',
        label='ACE-RPE + L_ace, 14M',
        paper=[76.8, 76.9, 82.0, 82.5, 83.1, 83.6],
    ),
)
