"""Define the architectures of the package timm: the smallest of each family, on small images, with
random weights."""

import functools

import timm
import torch
from timm import models

# Arguments of the models: 16 patches of 8 x 8 pixels, two layers of width 32
PATCHES = {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 2}
BLOCKS = {"img_size": 32, "patch_size": 8, "embed_dim": 32, "num_blocks": 2, "num_classes": 10}


def build(make, size):
    return make(), {"x": torch.randn(1, 3, size, size)}


def named(name, size=64, **arguments):
    """Return the model of this name, with other arguments."""
    make = functools.partial(timm.create_model, name, pretrained=False, num_classes=10, **arguments)
    return functools.partial(build, make, size)


def made(make, size=32, **arguments):
    """Return a model of the class `make`, with its arguments."""
    return functools.partial(build, functools.partial(make, **arguments), size)


ARCHITECTURES = {
    # convolutions
    "convnext": named("test_convnext"),
    "convmixer": made(models.ConvMixer, dim=32, depth=2, kernel_size=3, patch_size=4,
                      num_classes=10),
    "byobnet": named("test_byobnet"),
    "dla": named("dla46_c"),
    "edgenext": named("edgenext_xx_small"),
    "efficientnet": named("test_efficientnet"),
    "efficientvit": named("efficientvit_b0"),
    "ghostnet": named("ghostnet_050"),
    "lcnet": named("lcnet_035"),
    "mambaout": named("test_mambaout"),
    "mnasnet": named("mnasnet_small"),
    "mobilenetv2": named("mobilenetv2_035"),
    "mobilenetv3": named("mobilenetv3_small_050"),
    "mobilevit": named("mobilevit_xxs"),
    "mobilevitv2": named("mobilevitv2_050"),
    "regnetx": named("regnetx_002"),
    "regnety": named("regnety_002"),
    "resnet": named("test_resnet"),
    "resnet10t": named("resnet10t"),
    "starnet": named("starnet_s1"),
    "tinynet": named("tinynet_e"),
    # attention, and mixing of patches
    "beit": named("beit_base_patch16_224", 32, **PATCHES),
    "cait": named("cait_xxs24_224", 32, **PATCHES),
    "deit distilled": named("deit_tiny_distilled_patch16_224", 32, **PATCHES),
    "eva02": named("eva02_tiny_patch14_224", 32, **PATCHES),
    "gmlp": made(models.MlpMixer, **BLOCKS, mlp_ratio=4,
                 block_layer=models.mlp_mixer.SpatialGatingBlock, mlp_layer=timm.layers.GatedMlp),
    "mixer": made(models.MlpMixer, **BLOCKS),
    "pit": named("pit_ti_224", 32, img_size=32, patch_size=4, stride=2, base_dims=[8, 8, 8],
                 depth=[1, 1, 1], heads=[2, 2, 2]),
    "resmlp": made(models.MlpMixer, **BLOCKS, mlp_ratio=4,
                   block_layer=models.mlp_mixer.ResBlock, norm_layer=models.mlp_mixer.Affine),
    "swin": named("swin_tiny_patch4_window7_224", 32, img_size=32, patch_size=2, window_size=4,
                  embed_dim=16, depths=(2, 1), num_heads=(2, 2)),
    "swinv2": named("swinv2_tiny_window8_256", 32, img_size=32, patch_size=2, window_size=4,
                    embed_dim=16, depths=(2, 1), num_heads=(2, 2)),
    "tiny_vit": named("tiny_vit_5m_224", 64, embed_dims=(16, 16, 32, 32), depths=(1, 1, 1, 1),
                      num_heads=(1, 1, 2, 2), window_sizes=(4, 4, 4, 2)),
    "twins": named("twins_svt_small", 64, img_size=64, embed_dims=[16, 16, 32, 32],
                   depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2], wss=[4, 4, 2, 2]),
    "vit": named("vit_tiny_patch16_224", 32, **PATCHES),
    "xcit": named("xcit_nano_12_p16_224", 32, **PATCHES),
}
