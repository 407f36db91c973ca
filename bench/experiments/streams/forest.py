#!/usr/bin/env python3
"""A random forest on features of the points of segments, all clients together or each alone (docs/experiments/streams.md).

    forest.py SEGMENTS [--classes NAME,...] [--point-seconds S] [--seeds N] [--local]
SEGMENTS has a directory for each client, as fedge data screen writes them. Needs NumPy and scikit-learn. Prints a
Markdown row with the metrics of training.py, and the confusion matrix of the points. The definitions of the metrics
are those of docs/algorithms/screening.md; this program computes them by itself.
"""

import argparse
import json
import pathlib
import statistics
import struct

import numpy as np
from sklearn.ensemble import RandomForestClassifier

WIDTHS = (5, 11, 25, 51)  # samples around a point
SMOOTHED = 9              # samples over which predicted probabilities are averaged
TYPES = {"F32": np.float32, "F64": np.float64, "U8": np.uint8, "I64": np.int64, "I32": np.int32, "U32": np.uint32}


def arrays_of(path: pathlib.Path) -> dict[str, np.ndarray]:
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    arrays = {}
    for name, about in json.loads(data[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = about["data_offsets"]
            values = np.frombuffer(data[8 + length + begin:8 + length + end], TYPES[about["dtype"]])
            arrays[name] = values.reshape(about["shape"])
    return arrays


def side_of(client: pathlib.Path, side: str) -> tuple[np.ndarray, np.ndarray]:
    """x: windows x steps x channels; y: windows x steps."""
    files = [arrays_of(path) for path in sorted(client.glob(f"{side}-*.safetensors"))]
    if not files:
        return np.zeros((0, 0, 0)), np.zeros((0, 0), int)
    return np.concatenate([file["x"] for file in files]), np.concatenate([file["y"] for file in files]).astype(int)


def around(x: np.ndarray, width: int) -> np.ndarray:
    """windows x steps x width: the steps around each step; beyond the ends, the last one."""
    padded = np.pad(x, ((0, 0), (width // 2, width // 2)), mode="edge")
    return np.lib.stride_tricks.sliding_window_view(padded, width, axis=1)


def features(x: np.ndarray) -> np.ndarray:
    """windows x steps x features, of each channel."""
    columns = []
    for channel in np.moveaxis(x.astype(float), -1, 0):
        whole = channel.std(axis=1, keepdims=True) * np.ones_like(channel)
        columns += [channel, np.abs(channel), whole]
        for width in WIDTHS:
            near = around(channel, width)
            columns += [near.mean(-1), near.std(-1), near.min(-1), near.max(-1), np.abs(np.diff(near, axis=-1)).mean(-1)]
            # The same before and after, so that a forest can find the ends of an event.
            side = width // 2
            columns += [np.pad(near.std(-1), ((0, 0), (side, 0)), mode="edge")[:, :channel.shape[1]],
                        np.pad(near.std(-1), ((0, 0), (0, side)), mode="edge")[:, side:]]
    return np.stack(columns, axis=-1)


def events_of(classes: np.ndarray) -> list[tuple[int, int, int]]:
    ends = np.flatnonzero(np.diff(classes)) + 1
    runs = zip([0, *ends], [*ends, len(classes)])
    return [(begin, end, classes[begin]) for begin, end in runs if classes[begin] != 0]


def match(truth: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """True, predicted and found events, and the distance of the boundaries of the found ones, in steps."""
    truths, guesses = events_of(truth), events_of(predicted)
    found = distance = 0
    for begin, end, label in truths:
        for b, e, k in guesses:
            both = min(end, e) - max(begin, b)
            if k == label and both > 0 and 2 * both >= max(end, e) - min(begin, b):
                found, distance = found + 1, distance + abs(begin - b) + abs(end - e)
                break
    return np.array([len(truths), len(guesses), found, distance])


def metrics_of(truth: np.ndarray, predicted: np.ndarray, classes: int, seconds: float) -> dict[str, float]:
    confusion = np.zeros((classes, classes), int)
    np.add.at(confusion, (truth.ravel(), predicted.ravel()), 1)
    both, either = np.diag(confusion), confusion.sum(0) + confusion.sum(1)
    present = either > 0
    truths, guesses, found, distance = sum(match(t, p) for t, p in zip(truth, predicted))
    return {"macro_f1": float(np.mean(2 * both[present] / either[present])),
            "mean_iou": float(np.mean(both[present] / (either - both)[present])),
            "event_precision": found / guesses if guesses else float("nan"),
            "event_recall": found / truths if truths else float("nan"),
            "event_f1": 2 * found / (truths + guesses) if truths + guesses else float("nan"),
            "boundary_error": distance / (2 * found) * seconds if found else float("nan"),
            "confusion": confusion}


def weighted(parts: list[tuple[float, int]]) -> float:
    """The mean of the known values."""
    known = [(value, w) for value, w in parts if np.isfinite(value)]
    return sum(value * w for value, w in known) / sum(w for _, w in known) if known else float("nan")


def train(x: np.ndarray, y: np.ndarray, seed: int) -> RandomForestClassifier:
    # Each tree gets a tenth of the points, of which there are hundreds of thousands.
    forest = RandomForestClassifier(100, min_samples_leaf=5, max_samples=0.1, n_jobs=-1, random_state=seed)
    table = features(x)
    return forest.fit(table.reshape(-1, table.shape[-1]), y.ravel())


def predict(forest: RandomForestClassifier, x: np.ndarray) -> np.ndarray:
    table = features(x)
    scores = forest.predict_proba(table.reshape(-1, table.shape[-1])).reshape(*x.shape[:2], -1)
    smooth = np.stack([around(scores[..., k], SMOOTHED).mean(-1) for k in range(scores.shape[-1])], -1)
    return forest.classes_[smooth.argmax(-1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("segments", type=pathlib.Path)
    parser.add_argument("--classes", default="background,pothole,manhole,bump,other")
    parser.add_argument("--point-seconds", type=float, default=0.01)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--local", action="store_true", help="one forest for each client")
    options = parser.parse_args()
    names = options.classes.split(",")
    clients = sorted(path for path in options.segments.iterdir() if path.is_dir())
    training = [side_of(client, "train") for client in clients]
    tests = [side_of(client, "test") for client in clients]
    tested = [pair for pair in tests if len(pair[0])]
    # A client without tests of its own is tested on those of clients that only evaluate, as in training.py.
    foreign = [test for own, test in zip(training, tests) if not len(own[0]) and len(test[0])]

    def evaluate(forest: RandomForestClassifier, pairs: list) -> dict[str, float]:
        truth = np.concatenate([y for _, y in pairs])
        predicted = np.concatenate([predict(forest, x) for x, _ in pairs])
        return metrics_of(truth, predicted, len(names), options.point_seconds)

    rows = []
    for seed in range(1, options.seeds + 1):
        if not options.local:
            xs, ys = zip(*[pair for pair in training if len(pair[0])])
            rows.append(evaluate(train(np.concatenate(xs), np.concatenate(ys), seed), tested))
            continue
        parts = []
        for own, test in zip(training, tests):
            if len(own[0]):
                mine = [test] if len(test[0]) else foreign
                parts.append((evaluate(train(*own, seed), mine), sum(len(x) for x, _ in mine)))
        rows.append({key: weighted([(part[key], w) for part, w in parts]) for key in parts[0][0] if key != "confusion"})
    keys = [key for key in rows[0] if key != "confusion"]
    print("| training | " + " | ".join(keys) + " |")
    cells = []
    for key in keys:
        values = [row[key] for row in rows if np.isfinite(row[key])]
        spread = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
        cells.append(f"{statistics.fmean(values):.4f}{spread}" if values else "-")
    print("| random forest, " + ("local" if options.local else "centralised") + " | " + " | ".join(cells) + " |")
    if not options.local:
        print("confusion, seed 1, rows true, columns " + ", ".join(names))
        for name, row in zip(names, rows[0]["confusion"]):
            print(f"  {name}: " + " ".join(f"{100 * count / max(row.sum(), 1):.1f}" for count in row))


if __name__ == "__main__":
    main()
