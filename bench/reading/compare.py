#!/usr/bin/python3
"""How long a device takes to load a CSV file, and JPEG and PNG images, against pandas and Pillow in the same run.

    bench/reading/compare.py [BENCH_READING]      default: build/release/bin/bench_reading

It needs python3-numpy, python3-pandas and python3-pil. Both sides use one thread. The fastest of five turns counts.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

HERE = Path(__file__).resolve().parent
PROGRAM = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "../../build/release/bin/bench_reading"
COMMON = 'name = "mine"\npartition = { kind = "own", clients = 1 }\nsplit = { test = 0 }\n'
ROWS, COLUMNS = 400_000, 16
IMAGES, SIDE = 1_500, 224


def ours(home, data, path):
    run_file = home / "run.toml"
    run_file.write_text("[data]\n" + data + COMMON + '[model]\nkind = "softmax"\n')
    out = subprocess.run([PROGRAM, run_file, path], check=True, capture_output=True, text=True).stdout.split()
    return float(out[3])


def best(work):
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def row(what, size, fedge, other, name):
    print(f"| {what} | {size / 1e6:.0f} MB | {fedge:.2f} s, {size / 1e6 / fedge:.0f} MB/s | "
          f"{name}: {other:.2f} s | {other / fedge:.2f} |")


def table(home):
    rng = np.random.default_rng(1)
    names = [f"v{i}" for i in range(COLUMNS)]
    frame = pd.DataFrame(rng.normal(100, 30, (ROWS, COLUMNS)).round(4), columns=names)
    frame["label"] = rng.choice(["no", "yes"], ROWS)
    path = home / "table.csv"
    frame.to_csv(path, index=False)
    numeric = ", ".join(f'"{name}"' for name in names)
    fedge = ours(home, f'dataset = "csv"\nnumeric = [{numeric}]\ntarget = "label"\nclasses = ["no", "yes"]\n', path)

    def pandas():
        read = pd.read_csv(path)
        return read[names].to_numpy(np.float32), pd.Categorical(read["label"], ["no", "yes"]).codes

    row(f"CSV, {ROWS:,} rows of {COLUMNS} numbers", path.stat().st_size, fedge, best(pandas), "pandas")


def images(home, ending, **options):
    y, x = np.mgrid[:SIDE, :SIDE]
    rng = np.random.default_rng(2)
    for name in ["left", "right"]:
        (home / name).mkdir(parents=True)
        for i in range(IMAGES // 2):
            waves = [127 + 60 * np.sin(x / rng.uniform(3, 30) + y / rng.uniform(3, 30)) for _ in range(3)]
            pixels = np.stack(waves, axis=-1) + rng.normal(0, 12, (SIDE, SIDE, 3))
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(home / name / f"{i:05}.{ending}", **options)
    files = sorted(home.glob(f"*/*.{ending}"))
    size = sum(file.stat().st_size for file in files)
    keys = f'dataset = "images"\nshape = [{SIDE}, {SIDE}, 3]\nclasses = ["left", "right"]\n'
    fedge = ours(home, keys, home)
    pillow = best(lambda: np.stack([np.asarray(Image.open(file)) for file in files]))
    row(f"{ending.upper()}, {len(files):,} images of {SIDE} x {SIDE}", size, fedge, pillow, "Pillow")


with tempfile.TemporaryDirectory() as directory:
    print("| data | size | Fedge | other | times as fast |\n| --- | --- | --- | --- | --- |")
    table(Path(directory))
    images(Path(directory) / "jpg", "jpg", quality=90)
    images(Path(directory) / "png", "png")
