# Table 2 (Sec. 4.3): LXMERT, and models of the image or the question alone. The paper's figures of
# these two are published ones of other models, "when available", trained on the task alone. Here
# they are LXMERT from the same pre-training, which sees one modality in fine-tuning and test. The
# paper's test sets are on servers or unreleased: measured are the dev sets of Tables 3 to 5. Its
# rows "Human" and "State-of-the-Art" have no config.
_base_ = '../../_base_/ablations/lxmert.py'

title = 'LXMERT, Table 2: one modality, and both'

measured = {
    'VQA, binary': ('vqa', 'vqa/yes/no'),
    'VQA, number': ('vqa', 'vqa/number'),
    'VQA, other': ('vqa', 'vqa/other'),
    'VQA': ('vqa', 'vqa/overall'),
    'GQA, binary': ('gqa', 'gqa/binary'),
    'GQA, open': ('gqa', 'gqa/open'),
    'GQA': ('gqa', 'gqa/accuracy'),
    'NLVR2, consistency': ('nlvr2', 'consistency'),
    'NLVR2': ('nlvr2', 'accuracy'),
}
columns = {'shapes': measured, 'full': measured}

paper_columns = [
    'VQA test, binary', 'VQA test, number', 'VQA test, other', 'VQA test',
    'GQA test, binary', 'GQA test, open', 'GQA test', 'NLVR2 test, consistency', 'NLVR2 test',
]
rows = dict(
    image_only=dict(
        override=dict(model=dict(data_preprocessor=dict(only='image'))),
        label='Image Only',
        paper=[None, None, None, None, 36.1, 1.74, 17.8, 7.40, 51.9],
    ),
    language_only=dict(
        override=dict(model=dict(data_preprocessor=dict(only='text'))),
        label='Language Only',
        paper=[66.8, 31.8, 27.6, 44.3, 61.9, 22.7, 41.1, 4.20, 51.1],
    ),
    lxmert=dict(
        label='LXMERT', paper=[88.2, 54.2, 63.1, 72.5, 77.8, 45.0, 60.3, 42.1, 76.2]
    ),
)
