"""Reads and writes .safetensors files with only the standard library and NumPy. A file has eight bytes of
little-endian header length, a JSON header, and raw little-endian float32 values."""
import json
import struct

import numpy as np


def write(path, tensors, metadata=None):
    """Writes `tensors`, which maps names to arrays, as float32 in this order."""
    header, offset, data = {}, 0, []
    if metadata:
        header["__metadata__"] = {key: str(value) for key, value in metadata.items()}
    for name, values in tensors.items():
        raw = np.ascontiguousarray(values, dtype="<f4")
        header[name] = {"dtype": "F32", "shape": list(np.shape(values)), "data_offsets": [offset, offset + raw.nbytes]}
        offset += raw.nbytes
        data.append(raw.tobytes())
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def read(path):
    """Returns (tensors by name in the order of their data, metadata)."""
    with open(path, "rb") as file:
        raw = file.read()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    metadata = header.pop("__metadata__", {})
    data, tensors, end = raw[8 + length:], {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        first, last = entry["data_offsets"]
        assert entry["dtype"] == "F32" and first == end, f"{path}: {name} is not where it should be"
        tensors[name] = np.frombuffer(data[first:last], dtype="<f4").reshape(entry["shape"])
        end = last
    assert end == len(data), f"{path}: data are left over"
    return tensors, metadata
