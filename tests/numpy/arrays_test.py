"""Runs on NumPy files: whatever the format, type and layout, the same samples give the same model as a CSV
table. Archives that are damaged, or whose sizes are a lie, are refused.

    arrays_test.py FEDGE_SIM
"""

import gzip
import io
import json
import resource
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

SIM = Path(sys.argv[1])
RUN = """
[run]
name = "arrays"
rounds = 2
[data]
name = "mine"
partition = {{ kind = "own", clients = 2 }}
{data}
[model]
kind = "softmax"
[sampling]
clients_per_round = 2
"""


def simulate(directory, data):
    """The hash of the last model, or the error."""
    run_file = directory / "run.toml"
    run_file.write_text(RUN.format(data=data))
    done = subprocess.run(
        [SIM, "run", run_file, "--data", f"mine={directory / 'mine'}", "--out", directory / "out", "--force"],
        capture_output=True, text=True, timeout=60, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)))
    if done.returncode == 0:
        return (directory / "out" / "model.safetensors").read_bytes()
    return done.stderr


def with_files(data, write):
    """The result of a run whose clients have the files that `write` makes for them."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for client in range(2):
            home = directory / "mine" / f"client-{client}"
            home.mkdir(parents=True)
            write(home, client)
        return simulate(directory, data)


rng = np.random.default_rng(1)
PIXELS = [rng.integers(0, 100, (40, 3, 2, 2)).astype(np.int8) for _ in range(2)]  # channels last
LABELS = [rng.integers(0, 3, 40).astype(np.int64) for _ in range(2)]
ARRAYS = 'dataset = "arrays"\nclass_count = 3\nshape = [3, 2, 2]\nmean = [50]\ndeviation = [25]\n'


def write_table(home, client):
    names = [f"v{i}" for i in range(12)]
    rows = [",".join([*names, "label"])]
    for sample, label in zip(PIXELS[client].reshape(40, 12), LABELS[client]):
        rows.append(",".join(map(str, [*sample, label])))
    (home / "table.csv").write_text("\n".join(rows))


names = ", ".join(f'"v{i}"' for i in range(12))
expected = with_files(
    f'dataset = "csv"\nnumeric = [{names}]\ntarget = "label"\nclasses = ["0", "1", "2"]\n'
    f"mean = [{', '.join(['50'] * 12)}]\ndeviation = [{', '.join(['25'] * 12)}]\n", write_table)
assert isinstance(expected, bytes), expected


def check(what, data, write):
    result = with_files(data, write)
    assert isinstance(result, bytes), f"{what}: {result}"
    # The header has the run's digest, which differs; the values are the last bytes.
    assert result[-4 * 39:] == expected[-4 * 39:], f"{what}: another model"
    print(f"{what}: the same model")


for dtype in ["int8", "uint8", "int16", "uint32", "int64", "float16", "float32", "float64"]:
    check(f".npz of {dtype}", ARRAYS,
          lambda home, c, dtype=dtype: np.savez(home / "a.npz", x=PIXELS[c].astype(dtype), y=LABELS[c]))
check("compressed .npz", ARRAYS, lambda home, c: np.savez_compressed(home / "a.npz", x=PIXELS[c], y=LABELS[c]))
check("channels first, other names", ARRAYS + 'layout = "channels-first"\ninputs = "images"\ntargets = "digits"\n',
      lambda home, c: np.savez(home / "a.npz", images=np.ascontiguousarray(PIXELS[c].transpose(0, 3, 1, 2)),
                               digits=LABELS[c].astype(np.uint8)))


def write_npy(home, client):
    for part, rows in [("a", slice(0, 25)), ("b", slice(25, 40))]:
        np.save(home / f"{part}-x.npy", PIXELS[client][rows])
        np.save(home / f"{part}-y.npy", LABELS[client][rows])


check("several .npy files", ARRAYS, write_npy)


def safetensors(arrays, names):
    """The bytes of a safetensors file, written without its library."""
    header, data = {"__metadata__": {"by": "a test"}}, b""
    for name, array in arrays.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": names[array.dtype.name], "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


TYPES = {"int8": "I8", "uint8": "U8", "int32": "I32", "int64": "I64", "float16": "F16", "float32": "F32", "float64": "F64"}
for dtype in ["int8", "int32", "float16", "float32", "float64"]:
    check(f"safetensors of {dtype}", ARRAYS, lambda home, c, dtype=dtype: (home / "a.safetensors").write_bytes(
        safetensors({"x": PIXELS[c].astype(dtype), "other": LABELS[c].astype("float32"), "y": LABELS[c]}, TYPES)))


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.astype("uint8").tobytes()


def write_idx(home, client, ending="", pack=lambda data: data):
    for part, rows in [("a", slice(0, 25)), ("b", slice(25, 40))]:
        (home / f"{part}-images-idx4-ubyte{ending}").write_bytes(pack(idx(PIXELS[client][rows])))
        (home / f"{part}-labels-idx1-ubyte{ending}").write_bytes(pack(idx(LABELS[client][rows])))


IDX = ARRAYS + 'inputs = "images"\ntargets = "labels"\n'
check("IDX", IDX, write_idx)
check("compressed IDX", IDX, lambda home, c: write_idx(home, c, ".gz", gzip.compress))


def refused(what, expected_part, write, data=ARRAYS):
    result = with_files(data, write)
    assert isinstance(result, str), f"{what}: accepted"
    assert expected_part in result, f"{what}: {result}"
    print(f"{what}: {result.strip().splitlines()[0][-140:]}")


def write_archive(home, members, change=lambda data: data):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    (home / "a.npz").write_bytes(change(buffer.getvalue()))


def npy_bytes(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def header_only(shape, dtype="|i1"):
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": dtype, "fortran_order": False, "shape": shape})
    return out.getvalue()


refused("no such array", 'there is no array "y"; the file has "x"',
        lambda home, c: np.savez(home / "a.npz", x=PIXELS[c]))
refused("objects", 'has elements of type "|O"',
        lambda home, c: np.savez(home / "a.npz", x=PIXELS[c], y=LABELS[c].astype(object)))
refused("big-endian", "big-endian", lambda home, c: np.savez(home / "a.npz", x=PIXELS[c].astype(">f4"), y=LABELS[c]))
refused("Fortran order", "Fortran order",
        lambda home, c: np.savez(home / "a.npz", x=np.asfortranarray(PIXELS[c]), y=LABELS[c]))
refused("not a ZIP file", "a.npz", lambda home, c: (home / "a.npz").write_bytes(b"PK\x03\x04 not an archive"))
refused("truncated archive", "a.npz", lambda home, c: write_archive(
    home, {"x.npy": npy_bytes(PIXELS[c]), "y.npy": npy_bytes(LABELS[c])}, lambda data: data[:-100]))


def flip(data):
    at = data.index(b"y.npy") - 200  # within the compressed elements of x
    return data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1:]


refused("damaged member", "damaged or truncated", lambda home, c: write_archive(
    home, {"x.npy": npy_bytes(PIXELS[c]), "y.npy": npy_bytes(LABELS[c])}, flip))
# 200 MB of zeros in 200 kB, of samples that do not fit; then of samples that do, more than 4 GiB of floats.
refused("bomb of another shape", "a sample of the run has the shape", lambda home, c: write_archive(
    home, {"x.npy": header_only((20_000_000, 10)) + bytes(200_000_000), "y.npy": npy_bytes(LABELS[c])}))
refused("more samples than labels", "has 20000000 samples", lambda home, c: write_archive(
    home, {"x.npy": header_only((20_000_000, 3, 2, 2)) + bytes(240_000_000), "y.npy": npy_bytes(LABELS[c])}))
refused("too many values", "the samples have more than", lambda home, c: write_archive(
    home, {"x.npy": header_only((90_000_000, 3, 2, 2)) + bytes(1_080_000_000),
           "y.npy": header_only((90_000_000,)) + bytes(90_000_000)}) if c == 0 else np.savez(
               home / "a.npz", x=PIXELS[c], y=LABELS[c]))
refused("truncated IDX", "is truncated", lambda home, c: write_idx(home, c, pack=lambda data: data[:-1]), IDX)
refused("no labels beside IDX", "there is no file of its labels",
        lambda home, c: (home / "a-images-idx4-ubyte").write_bytes(idx(PIXELS[c])), IDX)
refused("damaged IDX", "gzip data is damaged", lambda home, c: write_idx(
    home, c, ".gz", lambda data: gzip.compress(data)[:-9] + b"123456789"), IDX)
for what, part, change in [
        ("of another name", 'the file has "z"', lambda h: {"z": h["x"]}),
        ("of 16-bit floats of another kind", 'elements of type "BF16"', lambda h: h | {"x": h["x"] | {"dtype": "BF16"}}),
        ("that reaches beyond the file", "does not have the bytes", lambda h: h | {"x": h["x"] | {"data_offsets": [0, 1 << 50]}}),
        ("with a shape that is a lie", "does not have the bytes", lambda h: h | {"x": h["x"] | {"shape": [1 << 40, 3, 2, 2]}}),
        ("with too many elements", "too many elements", lambda h: h | {"x": h["x"] | {"shape": [1 << 40, 1 << 40]}}),
        ("with a negative size", "no shape or no offsets", lambda h: h | {"x": h["x"] | {"shape": [-1]}})]:
    def write_changed(home, client, change=change):
        data = safetensors({"x": PIXELS[client], "y": LABELS[client]}, TYPES)
        length = struct.unpack("<Q", data[:8])[0]
        text = json.dumps(change(json.loads(data[8:8 + length]))).encode()
        (home / "a.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length:])
    refused(f"safetensors array {what}", part, write_changed)
refused("safetensors with a long header", "longer than the file", lambda home, c: (home / "a.safetensors").write_bytes(
    struct.pack("<Q", 1 << 23) + b"{}"))
refused("header that lies", "bytes, but its header describes", lambda home, c: write_archive(
    home, {"x.npy": header_only((1 << 40, 3, 2, 2)) + bytes(1000), "y.npy": npy_bytes(LABELS[c])}))
