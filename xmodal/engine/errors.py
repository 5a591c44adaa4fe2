"""From exceptions of a config to one sentence that says what to mend."""

import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType

from xmodal import registry
from xmodal.engine.keys import ConfigError, nearest, no_key

EXPLAINED = (
    ConfigError,
    KeyError,
    TypeError,
    ValueError,
    OSError,
    RuntimeError,
    ImportError,
    SyntaxError,
)
_PACKAGE = Path(registry.__file__).parent


def run_or_explain(main: Callable[[], None]) -> None:
    """Runs a tool; an error of the user's input becomes a sentence and exit status 2.

    With ``XMODAL_DEBUG=1`` the traceback is printed as well.
    """
    try:
        main()
    except EXPLAINED as error:
        sentence = explain(error)
        if sentence is None:
            raise
        if os.environ.get('XMODAL_DEBUG'):
            traceback.print_exc()
        print(f'error: {sentence}', file=sys.stderr)
        print('(XMODAL_DEBUG=1 shows the traceback)', file=sys.stderr)
        raise SystemExit(2) from None


def explain(error: Exception) -> str | None:
    """The sentence of an error, or None for one that is not the user's to mend."""
    if isinstance(error, ImportError):
        return _explain_import(error)
    if isinstance(error, SyntaxError):
        return _explain_syntax(error)
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if 'in DataLoader worker process' in text:  # with the worker's own traceback
        last = text.strip().splitlines()[-1]
        return last.partition(': ')[2] if '/xmodal/' in text else None
    if found := re.search(r'(\S+) is not in the (?:\S+::)?(.+?) registry', text):
        return _explain_type(*found.groups())
    if found := re.search(r'must contain the key "type", but got (\{.*\})', text):
        return (
            f'{found[1]} of the config has no type: is the name that it stands under misspelt? A '
            "new component needs type='…'."
        )
    if found := re.search(r"(\w+)\.__init__\(\) got an unexpected keyword argument '(\w+)'", text):
        owner, key = found.groups()
        built = _class_built(owner, error)
        return f'{built.__name__} {no_key(key, _keys(built))}' if built else None
    if found := re.search(r'(\w+)\.__init__\(\) missing .* argument.*?: (.+)', text):
        return f'{found[1]} needs the key(s) {found[2]}, which the config does not give.'
    if 'the first argument must be callable' in text:  # MMEngine's, of a function it doesn't find
        name = _frames(error)[-1].f_locals.get('collate_fn_type')
        return _explain_type(name, 'function') if isinstance(name, str) else None
    raised_by_us = isinstance(error, ConfigError | OSError | ValueError | RuntimeError)
    return text if raised_by_us and _is_ours(error) else None


def _explain_type(name: str, kind: str) -> str:
    near = nearest(name.rpartition('.')[2], _registered(kind))
    hint = f", did you mean '{near}'?" if near else '.'
    return (
        f"type='{name}' is not a registered {kind}{hint} A component of your own is found when its "
        "module is named: custom_imports=dict(imports=['my.module'])."
    )


def _explain_import(error: ImportError) -> str | None:
    """Of a module that a config, or a module of the user's, imports."""
    chain = [error]
    while isinstance(chain[-1].__context__, ImportError):
        chain.append(chain[-1].__context__)
    files = [frame.f_code.co_filename for frame in _frames(chain[-1])]
    files = [file for file in files if 'importlib' not in file]
    if files and _is_in_package(files[-1]):
        return None
    # MMEngine tells which module failed; what comes before is the whole search path.
    text = ': '.join(map(str, chain[-2:]))
    return f'{text}. Modules are looked for in {Path.cwd()}, in PYTHONPATH and where packages are.'


def _explain_syntax(error: SyntaxError) -> str | None:
    """Of a config, or a module of the user's."""
    # MMEngine parses the text of a config, whose name it keeps to itself.
    names = (frame.f_locals.get('filename') for frame in reversed(_frames(error)))
    named = [error.filename, *names]
    files = (name for name in named if isinstance(name, str) and Path(name).is_file())
    file = next(files, 'a config')
    return None if _is_in_package(file) else f'{file}, line {error.lineno}: {error.msg}'


def _is_ours(error: Exception) -> bool:
    """Whether it was raised by xmodal or a tool, or is about a file that the user named."""
    if isinstance(error, OSError) and error.filename is not None:
        return True
    frames = _frames(error)
    return bool(frames) and frames[-1].f_globals.get('__name__', '').startswith(
        ('xmodal', 'tools', '__main__')
    )


def _is_in_package(file: str) -> bool:
    return Path(file).is_relative_to(_PACKAGE)


def _frames(error: BaseException) -> list[FrameType]:
    """Where an error came by, the place that raised it last."""
    return [frame for frame, _ in traceback.walk_tb(error.__traceback__)]


def _registries() -> Iterable[registry._mmengine.Registry]:
    for value in vars(registry).values():
        if isinstance(value, registry._mmengine.Registry):
            yield value


def _registered(kind: str) -> set[str]:
    for found in _registries():
        if found.name == kind:
            return set(found.module_dict) | set(found.parent.module_dict)
    return set()


def _class_built(owner: str, error: TypeError) -> type | None:
    """The class that a config names: ``owner``, or one of its subclasses, which handed keys on.

    Looked for where the error came by, since a class may be MMEngine's, PyTorch's, or one that is
    called by its name and in no registry.
    """
    for frame in reversed(_frames(error)):
        values = [type(frame.f_locals.get('self')), *frame.f_locals.values()]
        for value in [*values, frame.f_globals.get(owner)]:
            if isinstance(value, type) and owner in (base.__name__ for base in value.__mro__):
                return value
    return None


def _keys(built: type) -> list[str]:
    """What a class takes, with what it hands on to its bases."""
    names: list[str] = []
    for base in built.__mro__:
        if '__init__' not in vars(base):
            continue
        parameters = list(inspect.signature(base.__init__).parameters.values())[1:]
        names += [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        if not any(p.kind == p.VAR_KEYWORD for p in parameters):
            break
    return list(dict.fromkeys(names))
