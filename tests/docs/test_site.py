"""The site is built without a warning, and all links in it lead somewhere."""

import os
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

mkdocs = pytest.importorskip('mkdocs', reason="the site needs the extra 'docs'")
pytest.importorskip('material', reason="the site needs the extra 'docs'")
pytest.importorskip('mkdocstrings_handlers.python', reason="the site needs the extra 'docs'")


@pytest.fixture(scope='module')
def site(tmp_path_factory):
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    os.environ['NO_MKDOCS_2_WARNING'] = '1'
    folder = tmp_path_factory.mktemp('site')
    config = load_config('mkdocs.yml', site_dir=str(folder), strict=True)
    config.plugins.pop('material/search')  # takes a third of the time
    build(config)  # strict: a warning, such as of a link, ends it
    return folder


class Links(HTMLParser):
    """The links, the anchors and the scripts of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.loaded = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values[key] for key in ('id', 'name') if values.get(key)}
        if tag == 'a' and values.get('href'):
            self.links.append(values['href'])
        if tag in ('script', 'img') and values.get('src'):
            self.loaded.append(values['src'])
        if tag == 'link' and values.get('rel') in ('stylesheet', 'preconnect', 'icon'):
            self.loaded.append(values['href'])


@pytest.fixture(scope='module')
def pages(site):
    return read_pages(site)


def read_pages(folder):
    return {file: Links(file.read_text()) for file in folder.resolve().rglob('*.html')}


def broken_links(pages):
    """Links without a target, as (page, link), and what pages load from elsewhere."""
    broken, foreign = [], set()
    for file, page in pages.items():
        foreign |= {url for url in page.loaded if url.startswith(('http:', 'https:', '//'))}
        for link in {*page.links, *page.loaded}:
            url = urlsplit(link)
            if url.scheme or url.netloc or file.name == '404.html':
                continue
            target = (file.parent / unquote(url.path)).resolve() if url.path else file
            target = target / 'index.html' if target.is_dir() else target
            anchors = pages[target].anchors if target in pages else set()
            if not target.exists() or (url.fragment and unquote(url.fragment) not in anchors):
                broken.append((str(file), link))
    return broken, foreign


def test_links_of_the_site_lead_to_pages_and_anchors_that_are_there(pages):
    assert len(pages) > 70
    broken, foreign = broken_links(pages)
    assert broken == []
    assert foreign == set()  # neither fonts nor scripts from elsewhere


def test_broken_links_are_found(tmp_path):
    (tmp_path / 'a').mkdir()
    (tmp_path / 'a/index.html').write_text('<h1 id="top">')
    link = '<a href="{}"></a>'
    good, bad = ['a/', 'a/#top', '#here', 'https://x.org'], ['b/', 'a/#no', '#no']
    text = '<p id="here">' + ''.join(link.format(href) for href in good + bad)
    (tmp_path / 'index.html').write_text(text + '<script src="https://x.org/a.js">')
    broken, foreign = broken_links(read_pages(tmp_path))
    assert sorted(href for _, href in broken) == sorted(bad)
    assert foreign == {'https://x.org/a.js'}


def test_an_equation_links_to_its_function_and_a_config_to_its_source(site, pages):
    page = pages[site.resolve() / 'papers/acerpe/index.html']
    anchor = 'reference/xmodal/functional/#xmodal.functional.anchors.anchor_mask'
    assert f'../../{anchor}' in page.links
    assert '../../source/configs/acerpe/#pretrain_4m-py' in page.links
    assert '../../tasks/retrieval/' in page.links


def test_every_module_is_in_the_reference(site, pages):
    reference = site.resolve() / 'reference'
    found = (page.anchors for file, page in pages.items() if file.is_relative_to(reference))
    anchors = set().union(*found)
    modules = {
        '.'.join(file.with_suffix('').parts)
        for file in Path('xmodal').rglob('*.py')
        if not file.stem.startswith('__') and '"""' in file.read_text()
    }
    assert modules <= anchors
    assert 'xmodal.models.albef.pretrainer.AlbefPretrainer.prepare_step' in anchors


def test_cells_of_the_notebook_are_on_its_page(site):
    text = (site / 'tutorials/first_run/index.html').read_text()
    assert 'build_world' in text and 'Inferencer' in text
