"""The page: a small server for one's own machine.

Images are served by their number in the index, never by a path. An uploaded image is the plain
body of a request and stays in memory.
"""

from collections.abc import Callable
from pathlib import Path
from threading import BoundedSemaphore

import cv2

from xmodal.datasets.image_file import BrokenImageError, decode_image
from xmodal.errors import FileError
from xmodal.search.catalogue import Filter, IndexedImage
from xmodal.search.index import ImageIndex
from xmodal.search.output import thumbnail
from xmodal.search.query import Query
from xmodal.visualization.figures import overlay_heatmap, to_uri

try:
    import uvicorn
    from fastapi import FastAPI, HTTPException, Request
    from fastapi.concurrency import run_in_threadpool
    from fastapi.middleware.trustedhost import TrustedHostMiddleware
    from fastapi.responses import HTMLResponse, JSONResponse, Response
except ImportError as error:  # FastAPI itself, or what it imports
    raise RuntimeError(f"the page needs FastAPI: pip install 'xmodal[demo]' ({error})") from None

PAGE = Path(__file__).parent / 'page' / 'index.html'
MAX_UPLOAD = 20 << 20  # bytes
MAX_PIXELS = 40_000_000
MAX_TEXT, MAX_RESULTS, MAX_RERANK, MAX_WORDS = 300, 200, 100, 12
HOSTS = ['127.0.0.1', 'localhost']
_SAFE = {
    'Content-Security-Policy': "default-src 'none'; img-src 'self' data:; connect-src 'self'; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
}


def make_app(index: ImageIndex) -> FastAPI:
    """The page of an index and what it asks for."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=HOSTS)
    app.middleware('http')(_add_headers)
    for error in (ValueError, OSError):
        app.add_exception_handler(error, _refuse)
    turn = BoundedSemaphore(2)  # of the model: more at once would only need more memory

    def indexed(number: int) -> IndexedImage:
        found = index.catalogue.images([number]) if abs(number) < 1 << 62 else []
        if not found:
            raise HTTPException(404, 'no such image')
        return found[0]

    @app.get('/')
    def page() -> HTMLResponse:
        return HTMLResponse(PAGE.read_text('utf-8'))

    @app.get('/api/info')
    def info() -> dict:
        has_matching = index.inferencer.model.matching_head is not None
        return {'images': len(index.catalogue.ids()), 'rerank': has_matching}

    @app.post('/api/search')
    async def search(
        request: Request,
        text: str = '',
        like: int | None = None,
        k: int = 40,
        rerank: int = 0,
        path: str | None = None,
        after: str | None = None,
        before: str | None = None,
        min_width: int | None = None,
    ) -> list[dict]:
        """The best images; the body may have an image."""
        if len(text) > MAX_TEXT:
            raise HTTPException(413, f'a query has at most {MAX_TEXT} characters')
        image: object = await _body(request) or None
        if image is not None:
            image = await run_in_threadpool(decode_image, image, 'the image', MAX_PIXELS)
        if min_width is not None and abs(min_width) > 1 << 31:
            raise HTTPException(400, 'min_width is no width of an image')
        where = Filter(path or None, after or None, before or None, min_width)

        def run() -> list[dict]:
            looked_for = image if like is None else indexed(like).entry.read()
            query = Query.parse(text, looked_for)
            count = min(max(rerank, 0), MAX_RERANK) if query.text else 0
            with turn:
                (hits,) = index.search([query], min(max(k, 1), MAX_RESULTS), where, count)
            return [hit.as_dict() | {'path': Path(hit.image.path).name} for hit in hits]

        return await run_in_threadpool(run)

    @app.get('/thumbnail/{number}')
    def show_thumbnail(number: int, request: Request) -> Response:
        return _jpeg(indexed(number), 320, request)

    @app.get('/image/{number}')
    def show_image(number: int, request: Request) -> Response:
        return _jpeg(indexed(number), 1600, request)

    @app.get('/api/words/{number}')
    def words(number: int, text: str) -> list[dict]:
        """Each word with its heat map on the image."""
        if len(text) > MAX_TEXT:
            raise HTTPException(413, f'a query has at most {MAX_TEXT} characters')
        found = indexed(number)
        with turn:
            # Words after 'and not' are not looked for.
            maps = index.heat_maps(found, Query.parse(text).sentence)[: MAX_WORDS + 1]
        image = thumbnail(found, 480)
        return [{'word': w, 'image': to_uri(overlay_heatmap(image, heat))} for w, heat in maps]

    return app


async def _add_headers(request: Request, call_next: Callable) -> Response:
    response = await call_next(request)
    response.headers.update(_SAFE)
    return response


async def _refuse(request: Request, error: Exception) -> JSONResponse:
    """What cannot be done is said, without the paths of this machine."""
    if isinstance(error, BrokenImageError):
        return JSONResponse({'detail': 'the image cannot be read'}, 400)
    if isinstance(error, FileError | OSError):
        detail = 'the index is not complete or damaged: give `xmodal search index` again'
        return JSONResponse({'detail': detail}, 500)
    return JSONResponse({'detail': str(error)}, 400)


async def _body(request: Request) -> bytes:
    """The body, of which no more is read than an image may have."""
    parts, length = [], 0
    async for part in request.stream():
        length += len(part)
        if length > MAX_UPLOAD:
            raise HTTPException(413, f'an image has at most {MAX_UPLOAD >> 20} MB')
        parts.append(part)
    return b''.join(parts)


def _jpeg(image: IndexedImage, side: int, request: Request) -> Response:
    """The image with sides of at most ``side`` pixels, unless the browser has it.

    It asks each time: under another index the number is that of another image.
    """
    headers = {'Cache-Control': 'no-cache', 'ETag': f'"{image.hash}"'}
    if request.headers.get('If-None-Match') == headers['ETag']:
        return Response(status_code=304, headers=headers)
    pixels = thumbnail(image, side)[..., ::-1]
    encoded = cv2.imencode('.jpg', pixels, [cv2.IMWRITE_JPEG_QUALITY, 88])[1]
    return Response(encoded.tobytes(), media_type='image/jpeg', headers=headers)


def serve(index: ImageIndex, port: int) -> None:
    """Serves the page on this machine alone, until it is stopped."""
    print(f'http://127.0.0.1:{port}')
    uvicorn.run(make_app(index), host='127.0.0.1', port=port, log_level='warning')
