"""The page in a real browser: Chromium, by Playwright."""

import shutil
import socket
import time
from threading import Thread

import pytest
from PIL import Image

from xmodal.search import ImageIndex

pytest.importorskip('faiss', reason="search needs the extra: pip install -e '.[search]'")
uvicorn = pytest.importorskip('uvicorn', reason="the page needs the extra: '.[demo]'")
pytest.importorskip('fastapi', reason="the page needs the extra: pip install -e '.[demo]'")
playwright = pytest.importorskip(
    'playwright.sync_api', reason='a browser is driven by the package playwright'
)
CHROMIUM = shutil.which('chromium')
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason='there is no chromium on this machine')
OPTIONS = (
    '--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking '
    '--disable-component-update --disable-sync'
).split()
COLOURS = {'red': 'red', 'blue': 'blue', 'green': 'green', '<img src=x onerror=alert(1)>': 'white'}


@pytest.fixture
def address(inferencer, tmp_path):
    """The page of four images, on a free port."""
    from xmodal.search.server import make_app

    photos = tmp_path / 'photos'
    photos.mkdir()
    for name, colour in COLOURS.items():
        Image.new('RGB', (32, 32), colour).save(photos / f'{name}.png')
    index = ImageIndex(tmp_path / 'index', inferencer)
    index.update(photos, progress=False)
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    options = dict(host='127.0.0.1', port=port, log_level='error')
    server = uvicorn.Server(uvicorn.Config(make_app(index), **options))
    thread = Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f'http://127.0.0.1:{port}/'
    server.should_exit = True
    thread.join()


@pytest.fixture
def browser():
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield chromium
        chromium.close()


def open_page(browser, address, **options):
    """The page, and what its console says."""
    page = browser.new_context(**options).new_page()
    problems = []
    page.on('console', lambda message: problems.append(message.text))
    page.on('pageerror', lambda error: problems.append(str(error)))
    page.on('dialog', lambda dialog: problems.append(dialog.message))
    page.goto(address)
    playwright.expect(page.locator('#status')).to_have_text('4 images')
    return page, problems


def wait_for_hits(page):
    playwright.expect(page.locator('#status')).to_contain_text('best first')
    assert page.locator('figure img').count() == 4


def test_a_person_searches_looks_and_asks_for_more(browser, address, tmp_path):
    page, problems = open_page(browser, address)
    page.keyboard.press('/')  # by the keyboard alone
    page.keyboard.type('a red ring')
    page.keyboard.press('Enter')
    wait_for_hits(page)
    scores = [float(x) for x in page.locator('figcaption span').all_text_contents()]
    assert scores == sorted(scores, reverse=True)
    cards = page.locator('figure > button')
    cards.nth(0).focus()
    page.keyboard.press('ArrowRight')
    assert cards.nth(1).evaluate('card => card === document.activeElement')
    page.keyboard.press('Enter')
    page.wait_for_selector('dialog[open]')
    page.locator('#words button').first.wait_for()
    words = page.locator('#words button').all_text_contents()
    assert words == ['image', 'whole text', 'a', 'red', 'ring']
    assert '/image/' in page.locator('#big').get_attribute('src')
    page.locator('#words button', has_text='ring').click()
    assert page.locator('#big').get_attribute('src').startswith('data:image/')
    page.keyboard.press('Escape')
    page.locator('figure', has=page.locator('img[alt="blue.png"]')).get_by_text('More').click()
    first = page.locator('figure img').first
    playwright.expect(first).to_have_attribute('alt', 'blue.png')
    assert float(page.locator('figcaption span').first.text_content()) > 0.99
    page.locator('#text').fill('a ring')
    page.locator('#rerank').check()
    playwright.expect(page.locator('figcaption').first).to_contain_text('re-ranked')
    page.locator('#text').fill('')
    page.locator('#rerank').uncheck()
    page.locator('#file').set_input_files(tmp_path / 'photos/green.png')
    page.locator('#text').press('Enter')
    playwright.expect(first).to_have_attribute('alt', 'green.png')
    assert problems == []


def test_a_wrong_query_is_said_on_the_page(browser, address):
    page, _ = open_page(browser, address)
    page.locator('#text').fill('a ring and not ')
    page.locator('#text').press('Enter')
    page.get_by_text("expected a text before and after 'and not'").wait_for()


def test_it_fits_a_phone_and_follows_the_colours_of_the_system(browser, address):
    colours = {}
    for scheme in ('light', 'dark'):
        options = dict(viewport={'width': 360, 'height': 700}, color_scheme=scheme)
        page, problems = open_page(browser, address, **options)
        page.locator('#text').fill('a red ring')
        page.locator('#text').press('Enter')
        wait_for_hits(page)
        assert page.evaluate('document.scrollingElement.scrollWidth') <= 360
        page.locator('figure > button').first.click()
        page.locator('#words button').first.wait_for()
        box = page.locator('#big').bounding_box()
        assert box['x'] >= 0 and box['x'] + box['width'] <= 360
        colours[scheme] = page.evaluate('getComputedStyle(document.body).backgroundColor')
        colours[f'{scheme} text'] = page.evaluate('getComputedStyle(document.body).color')
        assert problems == []
    assert len(set(colours.values())) >= 3 and colours['light'] != colours['dark']


def test_an_error_about_an_image_is_not_shown_under_the_next_one(browser, address):
    page, _ = open_page(browser, address)
    page.locator('#text').fill('a red ring')
    page.locator('#text').press('Enter')
    wait_for_hits(page)
    held = []
    page.route('**/api/words/**', held.append)
    for number in range(2):
        with page.expect_request('**/api/words/**'):
            page.locator('figure > button').nth(number).click()
        page.locator('#close').click()
    late, current = held
    current.continue_()
    page.locator('#words button').first.wait_for(state='attached')
    with page.expect_response('**/api/words/**'):
        late.fulfill(status=400, content_type='application/json', body='{"detail": "too late"}')
    page.wait_for_timeout(200)
    assert 'too late' not in page.locator('#words').text_content()
