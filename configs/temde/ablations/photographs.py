# The global module of SAF, SGR and SGRAF on photographs, as in Table 2. No table of the paper.
_base_ = '../../_base_/ablations/temde.py'

title = 'Photographs: the global module of SAF, SGR and SGRAF'

models = {'SAF': 'saf', 'SGR': 'sgr', 'SGRAF': 'sgraf'}
figures = {'TR@1': 'i2t/R@1', 'IR@1': 't2i/R@1', 'mean recall': 'mean_recall'}
columns = {
    'flickr8k': {
        f'{model} {name}': (f'{stage}_grid', key)
        for model, stage in models.items()
        for name, key in figures.items()
    },
}
paper_columns = []
rows = _base_.tables_1_and_2
