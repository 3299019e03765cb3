"""The four networks of MLPerf Tiny in float32, as ExecuTorch's examples define them."""

from executorch.examples.models import mlperf_tiny
from models.zoo.registry import Data, Model, fixture


@fixture
def ds_cnn(data: Data) -> Model:
    """Keyword spotting: depthwise separable CNN, 12 classes."""
    return Model(mlperf_tiny.DSCNNKWS(), (data.floats(1, 1, 49, 10),))


@fixture
def resnet8(data: Data) -> Model:
    """Image classification: ResNet-8, 10 classes."""
    return Model(mlperf_tiny.ResNet8(), (data.floats(1, 3, 32, 32),))


@fixture
def mobilenet_v1_025(data: Data) -> Model:
    """Visual wake words: MobileNetV1 of width 0.25, 2 classes."""
    return Model(mlperf_tiny.MobileNetV1025(), (data.floats(1, 3, 96, 96),), recipe=True)


@fixture
def deep_autoencoder(data: Data) -> Model:
    """Anomaly detection: fully connected autoencoder, 640 features."""
    return Model(mlperf_tiny.DeepAutoEncoder(), (data.floats(1, 640),))
