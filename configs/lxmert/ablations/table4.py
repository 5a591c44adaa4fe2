# Table 4 (Sec. 5.2): answers to questions as a pre-training task (QA10), against other questions
# mixed into the fine-tuning (DA). The paper's rows 1 and 2 are the first here, 3 and 4 the second.
_base_ = '../../_base_/ablations/lxmert.py'

title = 'LXMERT, Table 4: image QA in pre-training, or data augmentation in fine-tuning'

measured = {
    'VQA, DA': ('vqa_da', 'vqa/overall'),
    'GQA, DA': ('gqa_da', 'gqa/accuracy'),
    'VQA, FT': ('vqa', 'vqa/overall'),
    'GQA, FT': ('gqa', 'gqa/accuracy'),
    'NLVR2, FT': ('nlvr2', 'accuracy'),
}
columns = {'shapes': measured, 'full': measured}

paper_columns = ['VQA, DA', 'GQA, DA', 'VQA, FT', 'GQA, FT', 'NLVR2, FT']
rows = dict(
    p20=dict(
        override=_base_.overrides.p20,
        label='without answers (P20)',
        paper=[68.0, 58.1, 68.9, 58.2, 72.4],
    ),
    full=dict(label='with answers (P10 + QA10)', paper=[69.1, 59.2, 69.9, 60.0, 74.9]),
)
