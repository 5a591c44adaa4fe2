"""Released weights of others, renamed to those of this package."""

from xmodal.converters import albef, data2vec2, lxmert, sgraf

#: Converters of whole models: functions of a file and a model.
CONVERTERS = {
    'albef': albef.convert_file,
    'lxmert': lxmert.convert_file,
    'sgraf': sgraf.convert_file,
}

__all__ = ['CONVERTERS', 'albef', 'data2vec2', 'lxmert', 'sgraf']
