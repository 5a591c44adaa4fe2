# Table 3 (Sec. 5.1): pre-training, compared with the weights of BERT, dev sets. Columns "alone" are
# fine-tuned without pre-training. The embedded world has no BERT of its words: there the table
# `tasks` has these columns.
_base_ = '../../_base_/ablations/lxmert.py'

title = 'LXMERT, Table 3: pre-training, and BERT'

measured = {
    'VQA alone': ('vqa_alone', 'vqa/overall'),
    'GQA alone': ('gqa_alone', 'gqa/accuracy'),
    'NLVR2 alone': ('nlvr2_alone', 'accuracy'),
    'VQA': ('vqa', 'vqa/overall'),
    'GQA': ('gqa', 'gqa/accuracy'),
    'NLVR2': ('nlvr2', 'accuracy'),
}
columns = {'full': measured}

paper_columns = [
    'VQA dev alone', 'GQA dev alone', 'NLVR2 dev alone', 'VQA dev', 'GQA dev', 'NLVR2 dev',
]
rows = dict(
    # The language encoder starts as the first nine layers of BERT.
    bert=dict(
        override=dict(
            model=dict(backbone=dict(text_encoder=dict(pretrained='bert-base-uncased')))
        ),
        label='from BERT',
        paper=[65.5, 56.2, 50.9, 68.8, 58.3, 70.1],
    ),
    full=dict(label='from scratch', paper=[65.1, 50.0, 50.9, 69.9, 60.0, 74.9]),
)
