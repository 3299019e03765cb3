#!/usr/bin/env python3
"""Write the pictures of docs/report.md: the reports of five models, wide and narrow.

    make report-pictures
    .venv/bin/python tools/report_pictures.py

It needs chromium, and the firmware of the board mps2-an386. Each picture has 16 colours.
"""

import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHIPS = ["--chip", "stm32f407", "--chip", "rp2040"]
MODELS = ("ds_cnn", "resnet8", "mobilenet_v1_025", "deep_autoencoder", "mv2_005_2")
SIZES = {"wide": (1280, 1200), "narrow": (400, 900)}
COLOURS = 16
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
                None)


def capture(page, picture, width, height):
    """Show a page in a frame of this width, and write a picture of it.

    Chromium has no window as narrow as a phone; a frame in it has.
    """
    frame = page.with_name("frame.html")
    frame.write_text(f"<body style='margin:0'><iframe src='{page.name}' width={width} height={height} "
                     "style='border:0' scrolling=no></iframe>")
    subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                    "--allow-file-access-from-files", "--virtual-time-budget=3000",
                    f"--window-size={max(width, 600)},{height}", f"--screenshot={picture}",
                    frame.as_uri()], check=True, capture_output=True, timeout=120)


# ---- PNG: https://www.w3.org/TR/png-3/


def pixels(data):
    """Return width, height and the rows of pixels of a PNG, each of three bytes."""
    width, height, depth, kind = struct.unpack_from(">IIBB", data, 16)
    assert depth == 8 and kind in (2, 6)
    at, packed = 8, b""
    while at < len(data):
        size, name = struct.unpack_from(">I4s", data, at)
        packed += data[at + 8:at + 8 + size] if name == b"IDAT" else b""
        at += size + 12
    step = 3 if kind == 2 else 4
    raw, above, rows = zlib.decompress(packed), bytearray(width * step), []
    for y in range(height):
        start = y * (width * step + 1)
        row = unfiltered(raw[start], bytearray(raw[start + 1:start + 1 + width * step]), above, step)
        rows.append([bytes(row[x:x + 3]) for x in range(0, width * step, step)])
        above = row
    return width, height, rows


def unfiltered(kind, row, above, step):
    """Return the bytes of a row without its filter."""
    for i in range(len(row)):
        a, b = row[i - step] if i >= step else 0, above[i]
        c = above[i - step] if i >= step else 0
        nearest = min((a, b, c), key=lambda one: abs(a + b - c - one))
        row[i] = (row[i] + (0, a, b, (a + b) // 2, nearest)[kind]) & 255
    return row


def palette_of(rows):
    """Return the most frequent colours that differ visibly from each other."""
    chosen = []
    for colour, _ in Counter(pixel for row in rows for pixel in row).most_common():
        if all(sum(abs(x - y) for x, y in zip(colour, one, strict=True)) > 30 for one in chosen):
            chosen.append(colour)
        if len(chosen) == COLOURS:
            break
    return chosen


def reduced(data, width):
    """Return the left part of a PNG, with a palette of 16 colours."""
    _, height, rows = pixels(data)
    rows = [row[:width] for row in rows]
    palette, nearest = palette_of(rows), {}
    packed = bytearray()
    for row in rows:
        packed.append(0)  # no filter
        for pixel in row:
            if pixel not in nearest:
                nearest[pixel] = min(range(len(palette)), key=lambda i: sum(
                    (x - y) ** 2 for x, y in zip(palette[i], pixel, strict=True)))
        indexes = [nearest[pixel] for pixel in row] + [0] * (width % 2)
        packed += bytes(16 * a + b for a, b in zip(indexes[::2], indexes[1::2], strict=True))

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 4, 3, 0, 0, 0))
            + chunk(b"PLTE", b"".join(palette)) + chunk(b"IDAT", zlib.compress(bytes(packed), 9))
            + chunk(b"IEND", b""))


def main():
    if CHROMIUM is None:
        sys.exit("chromium is not installed: apt-get install chromium")
    with tempfile.TemporaryDirectory(prefix="picotorch-report-") as name:
        folder = Path(name)
        for model in MODELS:
            shutil.copy(ROOT / "tests" / "benchmark" / f"int8_{model}" / "m4.pte",
                        folder / f"{model}.pte")
            subprocess.run([sys.executable, "-m", "picotorch", "report", f"{model}.pte", *CHIPS],
                           cwd=folder, check=True, stdout=subprocess.DEVNULL)
            for kind, (width, height) in SIZES.items():
                picture = folder / "picture.png"
                capture(folder / f"{model}.html", picture, width, height)
                written = ROOT / "docs" / f"report_{model}_{kind}.png"
                written.write_bytes(reduced(picture.read_bytes(), width))
                print(f"{written.relative_to(ROOT)}: {written.stat().st_size:,} B")


if __name__ == "__main__":
    main()
