"""Make model.pte and recording.bin. Needs torch and executorch (pip install 'picotorch[export]'):

    python export.py                    # a minute
    python main.py > expected.txt       # on this computer's twin of the board

The data is synthetic: levels of decaying knocks and noise. The knock to learn is short, long: three
knocks, with the second gap two and a half times the first. For a knock of your own, change RHYTHM.
"""

from pathlib import Path

import numpy as np
import torch
from executorch.exir import to_edge
from picotorch.runtime import Runtime
from torch import nn

FOLDER = Path(__file__).parent
RATE = 25  # levels a second
STEPS = 75
RHYTHM = 0.2, 0.5  # seconds between the knocks
HIDDEN = 16
ANSWER = 8  # steps after the last knock with the answer yes


class Listener(nn.Module):
    """Map 1x1 uint8, the level of the last 40 ms, to 1x1 bool: true if the knock just ended. `hidden`
    stores the state between calls."""

    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(1, HIDDEN)
        self.answer = nn.Linear(HIDDEN, 1)
        self.register_buffer("hidden", torch.zeros(1, HIDDEN))

    def forward(self, x):
        self.hidden.copy_(self.cell(x.to(torch.float32) / 255, self.hidden))
        return self.answer(self.hidden) > 0

    def answers(self, levels):
        """Return the answer of each step of whole sequences, batch x steps, before `> 0`."""
        gru = nn.GRU(1, HIDDEN, batch_first=True)
        gru.weight_ih_l0, gru.weight_hh_l0 = self.cell.weight_ih, self.cell.weight_hh
        gru.bias_ih_l0, gru.bias_hh_l0 = self.cell.bias_ih, self.cell.bias_hh
        return self.answer(gru(levels[:, :, None] / 255)[0])[:, :, 0]


def sequence(random, rhythm=None):
    """Return levels of three seconds, the answer of each step, and its weight. Without a rhythm there
    are one to four knocks at any times, which may be the rhythm by chance."""
    levels = random.gamma(2, 2.0, STEPS)
    if rhythm is None:
        times = 0.3 + np.cumsum(random.uniform(0.12, 0.9, random.integers(1, 5)))
    else:
        gaps = np.array(rhythm) * random.uniform(0.85, 1.15) * random.uniform(0.95, 1.05, 2)
        times = random.uniform(0.1, 1.6) + np.cumsum([0, *gaps])
    starts = (times * RATE).round().astype(int)
    for start in starts[starts < STEPS]:
        levels[start:] += random.uniform(120, 230) * 0.3 ** np.arange(STEPS - start)
    answers, counts = np.zeros(STEPS), np.ones(STEPS)
    if rhythm is RHYTHM:
        end = starts[-1]
        answers[end + 2 : end + ANSWER] = 1
        counts[end + 2 : end + ANSWER] = 3  # these steps are rare
        counts[end : end + 2] = counts[end + ANSWER - 3 : end + ANSWER + 3] = 0
    return levels.clip(0, 255).round(), answers, counts


def sequences(random, count):
    rhythms = [RHYTHM, RHYTHM, None, None, RHYTHM[::-1], (RHYTHM[0], RHYTHM[0])]
    drawn = [sequence(random, rhythms[i % len(rhythms)]) for i in range(count)]
    return [torch.from_numpy(np.stack(part).astype(np.float32)) for part in zip(*drawn, strict=True)]


def train(model, levels, answers, counts):
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for step in range(1500):
        optimizer.param_groups[0]["lr"] = 0.01 * (1 - step / 1500)
        chosen = torch.randint(len(levels), (64,))
        loss = nn.functional.binary_cross_entropy_with_logits(
            model.answers(levels[chosen]), answers[chosen], counts[chosen])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def recording(random):
    """Return six knocks, each in three seconds, with a second of silence behind it, as uint8."""
    order = RHYTHM, RHYTHM[::-1], RHYTHM, (RHYTHM[0], RHYTHM[0]), (RHYTHM[1], RHYTHM[1]), RHYTHM
    quiet = np.full(RATE, 3)
    played = [part for rhythm in order for part in (sequence(random, rhythm)[0], quiet)]
    return np.concatenate(played).astype(np.uint8)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    random = np.random.default_rng(0)
    model = Listener()
    train(model, *sequences(random, 3000))
    levels, answers, counts = sequences(random, 600)
    heard = ((model.answers(levels) > 0) & (counts > 0)).any(1)
    print(f"right: {(heard == (answers > 0).any(1)).float().mean():.1%} of 600 new sequences")

    model.requires_grad_(False)
    step = torch.zeros(1, 1, dtype=torch.uint8)
    program = to_edge(torch.export.export(model, (step,))).to_executorch()
    played = recording(random)
    (FOLDER / "model.pte").write_bytes(program.buffer)
    (FOLDER / "recording.bin").write_bytes(played.tobytes())
    method = Runtime.get().load_program(FOLDER / "model.pte").load_method("forward")
    heard = np.concatenate([method.execute([level.reshape(1, 1)])[0] for level in played])
    wanted = model.answers(torch.from_numpy(played.astype(np.float32))[None])[0] > 0
    print(f"steps that differ from PyTorch: {(heard[:, 0] != wanted.numpy()).sum()}")


if __name__ == "__main__":
    main()
