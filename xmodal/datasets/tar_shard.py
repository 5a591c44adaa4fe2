"""Reading the pairs of a tar shard, whose members may have any size."""

import re
import tarfile
from collections.abc import Callable, Iterable, Iterator

from webdataset.tariterators import base_plus_ext, group_by_keys

from xmodal.datasets.image_file import MAX_BYTES

IMAGES = ('jpg', 'jpeg', 'jfif', 'png', 'webp')
TEXTS = ('txt', 'json')
_MAX_TEXT_BYTES = 1 << 20
# Types of members that hold the names of others.
_EXTENDED = (
    tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)  # fmt: skip
_META = re.compile(r'__[^/]*__($|/)')  # WebDataset's own members


def read_shards(
    shards: Iterable[str], report: Callable[[str], object]
) -> Iterator[dict[str, str | bytes]]:
    """Yields the members of each key of tar shards by their suffix, as WebDataset groups them.

    ``__key__`` and ``__url__`` name them. Members with other suffixes are not read. What cannot be
    read is left out and reported: members that are longer than an image file may be, or sparse,
    which take no place in the shard and any place in memory, and the rest of a damaged shard.

    Args:
        shards: paths.
        report: called with a sentence for each part that is left out.
    """

    def skip(error: Exception) -> bool:
        report(f'shard: {error}')
        return True

    return group_by_keys(_members(shards, report), handler=skip)


class _Member(tarfile.TarInfo):
    """A member whose extended headers are short: ``tarfile`` would read any length at once."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _EXTENDED and self.size > _MAX_TEXT_BYTES:
            raise tarfile.ReadError(f'a header of {self.size} bytes')
        return super()._proc_member(archive)


def _members(shards: Iterable[str], report: Callable[[str], object]) -> Iterator[dict]:
    """Yields each member's name and content, and an empty dict after each shard."""
    for shard in shards:
        try:
            with tarfile.open(shard, 'r|*', tarinfo=_Member) as tar:
                yield from _members_of(tar, shard, report)
        except Exception as error:  # tar, gzip and their headers each have their own ways to fail
            report(f'shard: {shard}: {error}')
        yield {}


def _members_of(
    tar: tarfile.TarFile, shard: str, report: Callable[[str], object]
) -> Iterator[dict]:
    """Yields the members of one shard."""
    for member in tar:
        tar.members = []  # it would keep all of them
        if not _is_read(member):
            continue
        limit = _MAX_TEXT_BYTES if member.name.endswith(TEXTS) else MAX_BYTES
        if member.size > limit or member.issparse():
            report(
                f'{shard}/{member.name}: {member.size} bytes'
                f'{", sparse" if member.issparse() else ""}, expected at most {limit}'
            )
            continue
        content = tar.extractfile(member).read()
        yield {'fname': member.name, 'data': content, '__url__': shard}


def _is_read(member: tarfile.TarInfo) -> bool:
    """Whether a member is an image or a text of a pair."""
    suffix = (base_plus_ext(member.name)[1] or '').lower()
    return member.isreg() and suffix in IMAGES + TEXTS and not _META.match(member.name)
