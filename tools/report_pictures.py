#!/usr/bin/env python3
"""Write the pictures of docs/report.md: the reports of five models, wide and narrow.

    make report-pictures
    .venv/bin/python tools/report_pictures.py

It needs chromium, ImageMagick, and the firmware of the board mps2-an386.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHIPS = ["--chip", "stm32f407", "--chip", "rp2040"]
MODELS = ("ds_cnn", "resnet8", "mobilenet_v1_025", "deep_autoencoder", "mv2_005_2")
SIZES = {"wide": (1280, 1200), "narrow": (400, 900)}
COLORS = 48  # of a picture, for a small file


def capture(page, picture, width, height):
    """Show a page in a frame of this width, and write a picture of the frame.

    Headless Chromium has no window of 400 pixels; a frame in it has.
    """
    frame, window = page.with_name("frame.html"), page.with_name("window.png")
    frame.write_text(f"<body style='margin:0'><iframe src='{page.name}' width={width} height={height} "
                     "style='border:0' scrolling=no></iframe>")
    subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                    "--allow-file-access-from-files", f"--window-size={max(width, 600)},{height}",
                    f"--screenshot={window}", frame.as_uri()],
                   check=True, stderr=subprocess.DEVNULL, timeout=120)
    subprocess.run(["convert", window, "-crop", f"{width}x{height}+0+0", "+repage", "+dither",
                    "-colors", str(COLORS), "-strip", "-define", "png:compression-level=9", picture],
                   check=True)


def main():
    if missing := [name for name in ("chromium", "convert") if shutil.which(name) is None]:
        sys.exit(f"{missing[0]} is not installed: apt-get install chromium imagemagick")
    with tempfile.TemporaryDirectory(prefix="picotorch-report-") as name:
        folder = Path(name)
        for model in MODELS:
            shutil.copy(ROOT / "tests" / "benchmark" / f"int8_{model}" / "m4.pte",
                        folder / f"{model}.pte")
            subprocess.run([sys.executable, "-m", "picotorch", "report", f"{model}.pte", *CHIPS],
                           cwd=folder, check=True, stdout=subprocess.DEVNULL)
            for kind, (width, height) in SIZES.items():
                written = ROOT / "docs" / f"report_{model}_{kind}.png"
                capture(folder / f"{model}.html", written, width, height)
                print(f"{written.relative_to(ROOT)}: {written.stat().st_size:,} B")


if __name__ == "__main__":
    main()
