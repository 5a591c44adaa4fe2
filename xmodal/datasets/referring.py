"""Readers of referring expressions: REFER's files, and ALBEF's lists."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from xmodal.datasets.base import find_files
from xmodal.datasets.boxes import Box, has_area
from xmodal.datasets.json_stream import stream_objects
from xmodal.datasets.records import RecordDataset
from xmodal.datasets.refer_files import (
    Instances,
    look_up,
    read_instances,
    read_plain_pickle,
    read_proposals,
)
from xmodal.datasets.text import clean_caption
from xmodal.fields import Fields, as_objects
from xmodal.files import explain_errors
from xmodal.registry import DATASETS


class ReferringDataset(RecordDataset):
    """Images with referring expressions, each for one object; a subclass reads the expressions.

    In training a sample is an image and an expression, without boxes. In test mode it also has:
    ``ref_id``; ``sent_id``, different for every sample; ``split``; ``size``, height and width of
    the image as annotated; ``box``, that of the object; and ``proposals``, the candidate boxes.

    Args:
        ann_file: list of expressions, below ``data_root``.
        instances: COCO's instances with the images and the annotated boxes.
        proposals: JSON file of a detector's boxes: ``[{"image_id", "box": [x, y, width, height]},
            …]`` (MAttNet's) or ``{image id: [[x, y, width, height, …], …]}`` (ALBEF's); None to
            choose from the annotated boxes of the image.
        data_root: folder that paths are relative to.
        data_prefix: ``image``: folder of the images, below ``data_root``.
        pipeline: transforms, from the result of ``get_data_info`` to ``inputs`` and
            ``data_samples``.
        test_mode: whether samples have boxes, nothing is random and a broken image is an error.
        max_words: number of words after which expressions are truncated.
        seed: seed of all random choices; None for that of the run.

    Raises:
        FileNotFoundError: when an annotation file does not exist, or none of the images; in test
            mode when one image does not exist.
        ValueError: when a file has another layout or names an unknown id, or a test image has no
            proposals.
    """

    def __init__(
        self,
        ann_file: str,
        instances: str | None = None,
        proposals: str | None = None,
        data_root: str = '',
        data_prefix: dict[str, str] | None = None,
        pipeline: list[dict | Callable] = (),
        test_mode: bool = False,
        max_words: int = 30,
        seed: int | None = None,
    ) -> None:
        self.max_words = max_words
        self.instances_file = instances and find_files(self, instances, data_root)[0]
        self.proposals_file = None
        if proposals and test_mode:
            (self.proposals_file,) = find_files(self, proposals, data_root)
        super().__init__(ann_file, data_root, data_prefix, pipeline, test_mode, seed)

    def read_tables(self) -> dict:
        """``instances``: COCO's instances; None without a file."""
        return {'instances': self.instances_file and read_instances(self.instances_file)}

    def read_files(self, files: list[Path], **tables) -> Iterator[dict]:
        """Yields the records; in test mode with the candidate boxes of their images."""
        records = super().read_files(files, **tables)
        if not self.test_mode:
            yield from records
            return
        records = list(records)
        sent_ids = Counter(record['sent_id'] for record in records)
        if repeated := [sent_id for sent_id, count in sent_ids.items() if count > 1]:
            raise ValueError(f'{files[0]}: sent_id {repeated[0]} occurs twice')
        proposals = self.find_proposals(records, tables.get('instances'))
        for record in records:
            yield {**record, 'proposals': proposals[record['image_id']]}

    def find_proposals(
        self, records: list[dict], instances: Instances | None
    ) -> dict[int, list[Box]]:
        """The candidate boxes of each image of the records, by image id.

        Raises:
            ValueError: when an image has none.
        """
        if self.proposals_file is None:
            file, proposals = instances.file, instances.boxes_by_image
            remedy = 'name a file with proposals as dataset.proposals'
        else:
            file, proposals = self.proposals_file, read_proposals(self.proposals_file)
            remedy = 'add some, or leave out dataset.proposals to choose from the annotated boxes'
        images = {record['image_id'] for record in records}
        if missing := sorted(image for image in images if not proposals.get(image)):
            raise ValueError(
                f'{file} has no box with an area for {len(missing)} of {len(images)} images, for '
                f'instance image {missing[0]}: {remedy}'
            )
        return proposals


def _test_fields(reference: Fields, sent_id: int, instances: Instances) -> dict:
    """The fields that a record has in test mode, from an entry of ``refs(unc).p``."""
    ann_id, image_id = reference.integer('ann_id'), reference.integer('image_id')
    box = look_up(instances.boxes, 'ann_id', ann_id, instances.file)
    if not has_area(box):
        raise ValueError(
            f'the box of ann_id {ann_id} is {box} in {instances.file}: no prediction '
            'can be correct for an object without area'
        )
    _, *size = look_up(instances.images, 'image_id', image_id, instances.file)
    boxes = instances.boxes_by_image[image_id]
    if boxes and box not in boxes:
        raise reference.error('ann_id', f'an annotation of image {image_id} in {instances.file}')
    return {
        'ref_id': reference.integer('ref_id'),
        'sent_id': sent_id,
        'split': reference.text('split'),
        'size': tuple(size),
        'box': box,
    }


@DATASETS.register_module()
class ReferDataset(ReferringDataset):
    """REFER's files: ``refs(unc).p`` and ``instances.json`` of RefCOCO, RefCOCO+ and others.

    Args:
        ann_file: ``refcoco+/refs(unc).p``.
        split: 'train', 'val', 'testA', 'testB', or a list of them.
        instances: ``refcoco+/instances.json``.
        **kwargs: see :class:`ReferringDataset`.
    """

    layout = (
        'a pickled list of {"ref_id", "ann_id", "image_id", "split", "sentences": [{"sent", '
        '"sent_id"}, …]} in plain containers'
    )

    def __init__(self, ann_file: str, split: str | list[str], instances: str, **kwargs) -> None:
        self.splits = [split] if isinstance(split, str) else list(split)
        super().__init__(ann_file, instances, **kwargs)

    def read_records(self, file: Path, instances: Instances) -> Iterator[dict]:
        """One record per expression of the splits."""
        references = list(as_objects(read_plain_pickle(file)))
        known = {reference.text('split') for reference in references}
        if unknown := set(self.splits) - known:
            raise ValueError(
                f'there is no split {sorted(unknown)}, expected splits of {sorted(known)}'
            )
        for reference in references:
            if reference.text('split') in self.splits:
                yield from self._read_reference(reference, instances)

    def _read_reference(self, reference: Fields, instances: Instances) -> Iterator[dict]:
        """One record per expression of an entry of ``refs(unc).p``."""
        image_id = reference.integer('image_id')
        image, *_ = look_up(instances.images, 'image_id', image_id, instances.file)
        for sentence in reference.objects('sentences'):
            record = {
                'image': image,
                'image_id': image_id,
                'text': clean_caption(sentence.text('sent'), self.max_words),
            }
            if self.test_mode:
                record |= _test_fields(reference, sentence.integer('sent_id'), instances)
            yield record


@DATASETS.register_module()
class AlbefReferringDataset(ReferringDataset):
    """ALBEF's lists: ``{image, text}`` for training, ``{image, text, ref_id}`` for tests.

    The ``sent_id`` of a sample is its index in the list.

    Args:
        ann_file: the list.
        references: REFER's ``refs(unc).p``, which ``ref_id`` refers to; required in test mode,
            together with ``instances``.
        test_mode: see :class:`ReferringDataset`.
        **kwargs: see :class:`ReferringDataset`.
    """

    layout = '[{"image": "path.jpg", "text": "expression", "ref_id": in tests}, …]'

    def __init__(
        self, ann_file: str, references: str | None = None, test_mode: bool = False, **kwargs
    ) -> None:
        if test_mode and not (references and kwargs.get('instances')):
            raise ValueError(
                f'{ann_file} has no boxes: in test mode dataset.references and dataset.instances '
                "must name REFER's refs(unc).p and instances.json"
            )
        self.references_file = None
        if test_mode:
            data_root = kwargs.get('data_root', '')
            (self.references_file,) = find_files(self, references, data_root)
        super().__init__(ann_file, test_mode=test_mode, **kwargs)

    def read_tables(self) -> dict:
        """``instances``, and ``references``: the entries of ``refs(unc).p`` by ``ref_id``."""
        references: dict[int, Fields] = {}
        if self.test_mode:
            with explain_errors(self.references_file, ReferDataset.layout):
                for entry in as_objects(read_plain_pickle(self.references_file)):
                    if entry.integer('ref_id') in references:
                        raise entry.error('ref_id', 'an id that no other reference has')
                    references[entry.integer('ref_id')] = entry
        return {'references': references, **super().read_tables()}

    def read_records(
        self, file: Path, references: dict[int, Fields], instances: Instances | None
    ) -> Iterator[dict]:
        """One record per item; training images are numbered in the order of the list."""
        image_ids: dict[str, int] = {}
        for index, item in enumerate(stream_objects(file)):
            image = item.name('image')
            record = {
                'image': image,
                'image_id': image_ids.setdefault(image, len(image_ids)),
                'text': clean_caption(item.text('text'), self.max_words),
            }
            if self.test_mode:
                reference = look_up(
                    references, 'ref_id', item.integer('ref_id'), self.references_file
                )
                record |= _test_fields(reference, index, instances)
                record['image_id'] = reference.integer('image_id')
            yield record
