"""What a run takes over from the weights it starts from."""

import pytest
import torch
from mmengine.config import Config
from runs import train

from xmodal.engine.launch import build_runner
from xmodal.models.base.queue import EMPTY


def test_weights_of_another_run_bring_no_queue_and_a_resumed_run_its_own(tiny_config, tmp_path):
    first = train(tiny_config, **{'train_cfg.max_epochs': 1})
    checkpoint = f'{tiny_config.work_dir}/epoch_1.pth'
    assert (first.model.queue.image_ids != EMPTY).all()

    def load(**changes):
        config = tiny_config.copy()
        config.merge_from_dict({'load_from': checkpoint, **changes})
        config.experiment_name = str(changes)
        runner = build_runner(config)
        runner.load_or_resume()
        return runner.model

    fresh = load(work_dir=str(tmp_path / 'fresh'))
    assert (fresh.queue.image_ids == EMPTY).all()
    shorter = load(work_dir=str(tmp_path / 'shorter'), **{'model.queue_length': 7})
    assert len(shorter.queue.image_ids) == 7
    without = load(work_dir=str(tmp_path / 'without'), custom_hooks=[], **{'model.momentum': None})
    assert (without.queue.image_ids == EMPTY).all()
    resumed = train(tiny_config, resume=True, **{'train_cfg.max_epochs': 1}).model
    for name, value in first.model.queue.state_dict().items():
        assert resumed.queue.state_dict()[name].equal(value), name
    for model in (fresh, shorter, without):
        for name, value in first.model.backbone.state_dict().items():
            assert torch.equal(model.backbone.state_dict()[name], value), name


@pytest.mark.parametrize(
    'name',
    [
        'retrieval_coco',
        'retrieval_coco_from_albef',
        'retrieval_flickr30k',
        'grounding_refcoco_plus',
        'snli_ve',
        'nlvr2_ta',
        'nlvr2',
        'vqa_v2',
        'retrieval_coco_albef',
        'nlvr2_albef',
    ],
)
def test_fine_tuning_fetches_no_weights_beside_its_checkpoint(name):
    config = Config.fromfile(f'configs/acerpe/{name}.py')
    assert config.load_from
    parts = [*config.model.backbone.values(), *config.model.get('heads', {}).values()]
    for part in parts:
        assert not isinstance(part, dict) or not part.get('pretrained'), part
