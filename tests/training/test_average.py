"""The mean of two networks lies between them, weight by weight, and is a checkpoint like any other."""

import pytest
import torch
import transformers

from medlink.errors import EncoderError
from training.average import average
from training.checkpoint import read_checkpoint

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def trained(tiny_bert, tmp_path_factory):
    directory = tmp_path_factory.mktemp("trained")
    for file in tiny_bert.iterdir():
        (directory / file.name).write_bytes(file.read_bytes())
    network = transformers.BertModel.from_pretrained(tiny_bert)
    generator = torch.Generator().manual_seed(3)
    for parameter in network.parameters():
        parameter.data += torch.randn(parameter.shape, generator=generator)
    network.save_pretrained(directory)
    return directory


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
def test_every_weight_lies_between_those_of_the_two(tiny_bert, trained, tmp_path, weight):
    average(read_checkpoint(tiny_bert, 25), read_checkpoint(trained, 25), tmp_path / "mean", weight=weight)

    before, after, mean = (read_checkpoint(path, 25).state for path in (tiny_bert, trained, tmp_path / "mean"))
    for name, values in mean.items():
        torch.testing.assert_close(
            torch.from_numpy(values), torch.from_numpy((1 - weight) * before[name] + weight * after[name])
        )


def test_networks_of_another_shape_are_refused(tiny_bert, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    for file in tiny_bert.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    config = transformers.AutoConfig.from_pretrained(tiny_bert)
    config.num_hidden_layers = 1
    transformers.BertModel(config).save_pretrained(other)

    with pytest.raises(EncoderError, match="differ"):
        average(read_checkpoint(tiny_bert, 25), read_checkpoint(other, 25), tmp_path / "mean", weight=0.5)
    assert not (tmp_path / "mean").exists()
