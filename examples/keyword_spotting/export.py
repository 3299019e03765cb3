"""Make model.pte and recording.wav. Needs torch and executorch (pip install 'picotorch[export]', and
pip install --no-deps tosa-tools==2026.5.0, which ExecuTorch's Cortex-M flow requires):

    python export.py                    # two minutes
    python main.py > expected.txt       # on this computer's twin of the board

The data is synthetic: a formant synthesizer of 30 lines says "yes" and "no", in voices of many heights,
lengths and speeds. It shows how to make and run such a model, which recognizes real voices badly. For
words of your own, pass recordings of many people to `train` (for example Google's Speech Commands).
"""

import wave
from pathlib import Path

import numpy as np
import torch
from executorch.backends.cortex_m.edge_compile_config import cortex_m_edge_compile_config
from executorch.backends.cortex_m.passes import CortexMPassManager
from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
from executorch.backends.cortex_m.target_config import CortexM, CortexMTargetConfig
from executorch.exir import to_edge
from picotorch.export.replan import export_file
from picotorch.runtime import Runtime
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

FOLDER = Path(__file__).parent
LABELS = "silence", "yes", "no", "other"
RATE = 8000
SAMPLES = RATE  # one second

# Frequencies of three formants in Hz, loudness of the voice, loudness of the hiss
SOUNDS = {
    "j": (270, 2290, 3010, 0.7, 0), "e": (530, 1840, 2480, 1, 0), "s": (530, 1840, 2480, 0, 0.5),
    "n": (250, 1100, 2200, 0.5, 0), "o": (570, 840, 2410, 1, 0), "u": (440, 1020, 2240, 0.8, 0),
    "a": (730, 1090, 2440, 1, 0), "i": (270, 2290, 3010, 1, 0), "-": (500, 1500, 2500, 0, 0),
}  # fmt: skip
WORDS = {"yes": "jees", "no": "noou"}
OTHERS = "aiu", "sa", "-so-", "iau", "unu", "is", "oe", "nana", "se", "aa", "eju"


class Keywords(nn.Module):
    """Map 1x1x1x8000 samples from -1 to 1 to scores of the labels. The first layer learns its own
    features of the sound."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            *_convolution(1, 24, 64, 24), *_convolution(24, 24, 8, 4), *_convolution(24, 32, 8, 4),
            *_convolution(32, 32, 5, 2), nn.Flatten(), nn.Linear(32 * 8, len(LABELS)))  # fmt: skip

    def forward(self, x):
        return self.layers(x)


def _convolution(inputs, outputs, kernel, stride):
    return (nn.Conv2d(inputs, outputs, (1, kernel), (1, stride), bias=False),
            nn.BatchNorm2d(outputs), nn.ReLU())  # fmt: skip


def say(sounds, random):
    """Return a second of a person who says these sounds, from -1 to 1."""
    length = int(random.uniform(0.35, 0.6) * RATE)
    at = np.linspace(0, len(sounds) - 1, length)
    first, second, third, voice, hiss = (
        np.interp(at, range(len(sounds)), [SOUNDS[sound][i] for sound in sounds]) for i in range(5))
    t = np.arange(length) / RATE
    pitch = random.uniform(90, 240) * (1 + random.uniform(-0.2, 0.2) * t)
    turn, spoken = 2 * np.pi * np.cumsum(pitch) / RATE, np.zeros(length)
    size = random.uniform(0.92, 1.12)  # the size of the speaker's mouth
    for k in range(1, int(3600 / pitch.max())):
        loud = sum(weight * np.exp(-(((k * pitch - size * formant) / width) ** 2))
                   for formant, width, weight in ((first, 120, 1), (second, 180, 0.6),
                                                  (third, 220, 0.4)))
        spoken += (loud + 0.02) * np.sin(k * turn) / k**0.3
    noise = np.diff(random.normal(0, 1, length + 1))
    word = (voice * spoken + hiss * noise) * np.minimum(1, np.minimum(t, t[::-1]) / 0.03)
    second_long = random.normal(0, random.uniform(0.005, 0.03), SAMPLES)
    start = random.integers(500, SAMPLES - length - 500)
    second_long[start : start + length] += random.uniform(0.3, 0.9) * word / np.abs(word).max()
    return second_long.clip(-1, 127 / 128)


def sound(label, random):
    if label == "silence":
        return random.normal(0, random.uniform(0.005, 0.05), SAMPLES).clip(-1, 127 / 128)
    return say(WORDS.get(label) or random.choice(OTHERS), random)


def sounds(random, count):
    classes = random.integers(len(LABELS), size=count)
    made = np.stack([sound(LABELS[number], random) for number in classes]).astype(np.float32)
    return torch.from_numpy(made).reshape(count, 1, 1, SAMPLES), torch.from_numpy(classes)


def train(model, heard, classes):
    optimizer = torch.optim.Adam(model.parameters(), 0.003, weight_decay=1e-4)
    for _ in range(400):
        chosen = torch.randint(len(heard), (64,))
        shifted = heard[chosen].roll(int(torch.randint(-400, 400, ())), -1)
        loss = nn.functional.cross_entropy(model(shifted), classes[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def export_int8(model, examples):
    """Return the program in ExecuTorch's Cortex-M dialect, quantized by these examples, with int8
    inputs and outputs."""
    model = model.to(memory_format=torch.channels_last)  # as the dialect requires
    inputs = [(example[None].to(memory_format=torch.channels_last),) for example in examples]
    graph = torch.export.export(model, inputs[0]).module(check_guards=False)
    prepared = prepare_pt2e(graph, CortexMQuantizer())
    for each in inputs:
        prepared(*each)
    edge = to_edge(torch.export.export(convert_pt2e(prepared), inputs[0]),
                   compile_config=cortex_m_edge_compile_config())
    manager = CortexMPassManager(edge.exported_program(),
                                 target_config=CortexMTargetConfig(cpu=CortexM.M4))
    edge._edge_programs["forward"] = manager.transform()
    return export_file(bytes(edge.to_executorch().buffer), "model.pte", int8_io=True)[0]


def recording(random):
    """Return five words and silence, a second each, between -128 and 127."""
    said = [sound(label, random) for label in ("silence", "yes", "other", "no", "yes", "no")]
    return (np.concatenate(said) * 128).round().astype(np.int8)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    random = np.random.default_rng(0)
    model = Keywords()
    train(model, *sounds(random, 3000))
    heard, classes = sounds(random, 400)
    print(f"right: {(model.eval()(heard).argmax(1) == classes).float().mean():.1%} of 400 new sounds")
    loudest = torch.linspace(-1, 127 / 128, SAMPLES).reshape(1, 1, 1, SAMPLES)
    (FOLDER / "model.pte").write_bytes(export_int8(model, torch.cat([loudest, heard[:100]])))
    with wave.open(str(FOLDER / "recording.wav"), "wb") as file:
        file.setparams((1, 1, RATE, 0, "NONE", None))
        file.writeframes((recording(random).view(np.uint8) ^ 128).tobytes())

    method = Runtime.get().load_program(FOLDER / "model.pte").load_method("forward")
    small = (heard * 128).round().to(torch.int8).numpy()
    scores = np.concatenate([method.execute([sound[None]])[0] for sound in small])
    right = (scores.argmax(1) == classes.numpy()).mean()
    print(f"right: {right:.1%} of them as int8, input {method.metadata.input_quantization(0)}")


if __name__ == "__main__":
    main()
