#!/usr/bin/env python3
"""Makes streams of a person's phone or watch from the files of sp-sw-har (Matey-Sanz et al., 2023).

Standing up, sitting down and turning are the events, sitting and walking the background:
    har_streams.py DIRECTORY OUT [sp|sw]
DIRECTORY holds s01_sp.csv.gz and so on, one for each person and device, with the columns recording,
x_acc_milli ... z_gyro_milli, timestamp_ms and label. Each becomes OUT/person-01.csv. Recordings follow each
other with ten seconds between them; accelerations are in units of 10 m/s^2, rotations in rad/s.
"""

import csv
import gzip
import pathlib
import sys

LABELS = {"SEATED": 0, "WALKING": 0, "STANDING_UP": 1, "SITTING_DOWN": 2, "TURNING": 3}
BREAK_MS = 10_000


def convert(source: pathlib.Path, target: pathlib.Path) -> int:
    samples = 0
    offset = last = None
    recording = None
    with gzip.open(source, "rt", newline="") as rows, open(target, "w", encoding="utf-8") as out:
        out.write("seconds,ax,ay,az,gx,gy,gz,label\n")
        for row in csv.DictReader(rows):
            time = int(row["timestamp_ms"])
            if recording != row["recording"]:
                recording = row["recording"]
                offset = time - (0 if last is None else last + BREAK_MS)
            last = time - offset
            values = [int(row[axis + "_acc_milli"]) / 1e4 for axis in "xyz"]
            values += [int(row[axis + "_gyro_milli"]) / 1e3 for axis in "xyz"]
            out.write(f"{last / 1000:.3f}," + ",".join(f"{v:.4f}" for v in values))
            out.write(f",{LABELS[row['label']]}\n")
            samples += 1
    return samples


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    device = sys.argv[3] if len(sys.argv) > 3 else "sp"
    out = pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    files = sorted(pathlib.Path(sys.argv[1]).glob(f"s*_{device}.csv.gz"))
    if not files:
        sys.exit(f"{sys.argv[1]} has no file s*_{device}.csv.gz")
    for file in files:
        target = out / f"person-{file.name[1:3]}.csv"
        print(target, convert(file, target), "samples")


if __name__ == "__main__":
    main()
