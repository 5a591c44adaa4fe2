"""MkDocs hooks: the site has the repository's pages as they are, and pages made from its sources.

Links in pages are those of the repository. Here each becomes a link to the page of its target: a
module of xmodal to the reference, a config or a tool to a page with the sources of its folder.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
# Pages outside of docs/, by their place in the site.
OUTSIDE = {
    'index.md': 'README.md',
    'changelog.md': 'CHANGELOG.md',
    'contributing.md': 'CONTRIBUTING.md',
    **{
        f'{folder}/{file.parent.name}.md': str(file.relative_to(ROOT))
        for folder, pattern in {'papers': 'configs/*', 'projects': 'projects/*'}.items()
        for file in sorted(ROOT.glob(f'{pattern}/README.md'))
    },
}
PLACES = {file: uri for uri, file in OUTSIDE.items()}
# [`name`](file#anchor), of which name and anchor may be missing.
LINK = re.compile(r'(?:\[`(\w+)`)?\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)')
CODE = re.compile(r'(^ *```.*?^ *```$)', re.MULTILINE | re.DOTALL)
ROLE = re.compile(r':(?:func|class|meth|mod|attr):<code>~?([^<]*)</code>')


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Adds the reference to the navigation."""
    config.nav.append({'Reference': [{name: uri} for name, uri, _ in reference()]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are not in docs/ as Markdown."""
    for uri, file in OUTSIDE.items():
        files.append(File.generated(config, uri, content=(ROOT / file).read_text('utf-8')))
    for notebook in [file for file in files if file.src_uri.endswith('.ipynb')]:
        uri = notebook.src_uri.replace('.ipynb', '.md')
        files.append(File.generated(config, uri, content=from_notebook(notebook.content_string)))
        files.remove(notebook)
    for name, uri, modules in reference():
        entries = ''.join(f'::: {module}\n\n' for module in modules)
        files.append(File.generated(config, uri, content=f'# {name}\n\n{entries}'))
    for folder, names in sorted(linked_sources(files).items()):
        content = from_sources(folder, sorted(names))
        files.append(File.generated(config, f'source/{folder}.md', content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Makes links between files of the repository links between pages."""
    uri = page.file.src_uri

    def link(match: re.Match) -> str:
        name, file, given = match.groups()
        target = normpath(join(dirname(origin(uri)), file))
        if not (ROOT / target).exists():
            return match[0]  # MkDocs warns of it
        place, anchor = place_of(target)
        if name and place.startswith('reference/') and defines(target, name):
            anchor += f'.{name}'
        text = f'[`{name}`' if name else ''
        return f'{text}]({relpath(place, dirname(uri) or ".")}{given or anchor})'

    parts = CODE.split(markdown)
    return ''.join(part if index % 2 else LINK.sub(link, part) for index, part in enumerate(parts))


def on_page_content(html: str, **_: object) -> str:
    """Shows the roles of docstrings as code."""
    return ROLE.sub(r'<code>\1</code>', html)


def origin(uri: str) -> str:
    """The file of the repository that a page is made from; its folder is what links start at."""
    return OUTSIDE.get(uri, f'docs/{uri}')


def place_of(file: str) -> tuple[str, str]:
    """The page of a file or folder of the repository, and the anchor on it."""
    if (ROOT / file / 'README.md').is_file():
        file = f'{file}/README.md'
    if file.startswith('docs/'):
        return file.removeprefix('docs/').replace('.ipynb', '.md'), ''
    if uri := PLACES.get(file):
        return uri, ''
    parts = Path(file).with_suffix('').parts
    if parts[0] == 'xmodal':
        folder = parts if (ROOT / file).is_dir() else parts[:-1]
        module = '' if (ROOT / file).is_dir() else f'#{".".join(parts)}'
        return f'reference/{"/".join(folder)}.md', module
    if (ROOT / file).is_dir():
        return f'source/{file}.md', ''
    return f'source/{dirname(file) or "files"}.md', f'#{slug(file)}'


def defines(module: str, name: str) -> bool:
    """Whether a module has a class or a function of a name."""
    path = ROOT / module
    pattern = rf'^(class|def) {name}\b'
    return path.is_file() and bool(re.search(pattern, path.read_text('utf-8'), re.MULTILINE))


def slug(file: str) -> str:
    """The anchor of a file on the page of its folder."""
    return Path(file).name.lower().replace('.', '-')


def reference() -> Iterator[tuple[str, str, list[str]]]:
    """The packages of xmodal: name, page, and modules."""
    for folder in sorted({file.parent for file in (ROOT / 'xmodal').rglob('*.py')}):
        parts = folder.relative_to(ROOT).parts
        if '.mim' in parts or 'weights' in parts:  # not modules
            continue
        files = sorted(file for file in folder.glob('*.py') if not file.stem.startswith('__'))
        if files:
            name = '.'.join(parts)
            yield name, f'reference/{"/".join(parts)}.md', [f'{name}.{f.stem}' for f in files]


def linked_sources(files: Files) -> dict[str, set[str]]:
    """The sources that pages link to, by folder."""
    found: dict[str, set[str]] = {}
    for page in files.documentation_pages():
        for _, link, _ in LINK.findall(CODE.sub('', page.content_string)):
            target = normpath(join(dirname(origin(page.src_uri)), link))
            place, _ = place_of(target)
            if place.startswith('source/') and (ROOT / target).exists():
                path = ROOT / target
                names = {f.name for f in path.glob('*.py')} if path.is_dir() else {path.name}
                found.setdefault(place[len('source/') : -len('.md')], set()).update(names)
    return found


def from_sources(folder: str, names: list[str]) -> str:
    """A page of the files of a folder."""
    root = '' if folder == 'files' else folder
    sections = [f'# {folder}']
    for name in names:
        text = (ROOT / root / name).read_text('utf-8').rstrip()
        language = 'python' if name.endswith('.py') else ''
        sections.append(f'## {name} {{#{slug(name)}}}\n\n````{language}\n{text}\n````')
    return '\n\n'.join(sections) + '\n'


def from_notebook(text: str) -> str:
    """A notebook as Markdown: its cells, and what they printed."""
    parts = []
    for cell in json.loads(text)['cells']:
        source = ''.join(cell['source'])
        parts.append(source if cell['cell_type'] == 'markdown' else f'```python\n{source}\n```')
        for output in cell.get('outputs', []):
            data = output.get('data', {})
            if 'image/png' in data:
                image = ''.join(data['image/png']).replace('\n', '')
                parts.append(f'![output](data:image/png;base64,{image})')
            else:
                printed = output.get('text') or data.get('text/plain', '')
                parts.append(f'```\n{"".join(printed).rstrip()}\n```')
    return '\n\n'.join(parts) + os.linesep
