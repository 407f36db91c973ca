"""Images against Pillow: a run on PNG and JPEG files gives the same model as one on the pixels that Pillow reads.

    images_test.py FEDGE_SIM
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

SIM = Path(sys.argv[1])
HEIGHT, WIDTH, COUNT = 17, 22, 24
RUN = """
[run]
name = "images"
rounds = 2
[data]
name = "mine"
partition = {{ kind = "own", clients = 2 }}
split = {{ test = 0 }}
shape = [{height}, {width}, {channels}]
{data}
[model]
kind = "softmax"
[sampling]
clients_per_round = 2
[evaluation]
where = "none"
"""


def model(directory, channels, data):
    run_file = directory / "run.toml"
    run_file.write_text(RUN.format(height=HEIGHT, width=WIDTH, channels=channels, data=data))
    subprocess.run([SIM, "run", run_file, "--data", f"mine={directory / 'mine'}", "--out", directory / "out",
                    "--force"], check=True, timeout=60, stdout=subprocess.DEVNULL)
    parameters = (HEIGHT * WIDTH * channels + 1) * 2
    return (directory / "out" / "model.safetensors").read_bytes()[-4 * parameters:]


def smooth(rng, channels):
    """An image that JPEG changes little."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    waves = [127 + 100 * np.sin(x / rng.uniform(3, 9) + y / rng.uniform(3, 9)) for _ in range(channels)]
    return np.stack(waves, axis=-1).astype(np.uint8)


def compare(what, channels, ending, **options):
    rng = np.random.default_rng(channels)
    with tempfile.TemporaryDirectory() as files, tempfile.TemporaryDirectory() as arrays:
        for client in range(2):
            pixels, labels = [], []
            for label, name in enumerate(["left", "right"]):
                home = Path(files) / "mine" / f"client-{client}" / name
                home.mkdir(parents=True)
                for i in range(COUNT):
                    path = home / f"{i:03}.{ending}"
                    Image.fromarray(smooth(rng, channels).squeeze()).save(path, **options)
                    read = np.asarray(Image.open(path))
                    pixels.append(read.reshape(HEIGHT, WIDTH, channels))
                    labels.append(label)
            home = Path(arrays) / "mine" / f"client-{client}"
            home.mkdir(parents=True)
            np.savez(home / "a.npz", x=np.stack(pixels), y=np.array(labels))
        one = model(Path(files), channels, 'dataset = "images"\nclasses = ["left", "right"]')
        other = model(Path(arrays), channels, 'dataset = "arrays"\nclass_count = 2\nmean = [127.5]\ndeviation = [127.5]')
        difference = np.abs(np.frombuffer(one, np.float32) - np.frombuffer(other, np.float32)).max()
        assert difference < 1e-6, f"{what}: another model, by {difference}"
        print(f"{what}: the same model as from Pillow's pixels (largest difference {difference:.1e})")


compare("PNG, colours", 3, "png")
compare("PNG, grey", 1, "png")
compare("JPEG, colours", 3, "jpg", quality=90)
compare("JPEG, grey", 1, "jpeg", quality=75)
compare("JPEG, progressive", 3, "jpg", quality=90, progressive=True, subsampling=0)
