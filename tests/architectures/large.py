"""Define architectures of torchvision and transformers in full size, with random weights. Their
programs are larger than 128 MiB. The planned memory of VGG11 is larger, too, because the exporter
transposes weights of linear layers into it."""

import functools

from architectures import from_timm, from_transformers
from torchvision import models

# The sizes of the models that are trained on short stories
LLAMA = {"vocab_size": 32000, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
         "intermediate_size": 2048, "max_position_embeddings": 1024}


def deeplab():
    """Build DeepLabV3, whose output is a dict."""
    make = functools.partial(models.segmentation.deeplabv3_resnet50, weights_backbone=None)
    model, inputs = from_timm.build(make, 64)
    return from_transformers.Outputs(model), inputs


ARCHITECTURES = {
    "torchvision: vgg11": from_timm.made(models.vgg11, 224),
    "torchvision: vit_b_16": from_timm.made(models.vit_b_16, 224),
    "torchvision: deeplabv3_resnet50": deeplab,
    "transformers: llama, 12 layers": from_transformers.decoder("llama", LLAMA),
}
