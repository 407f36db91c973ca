"""Downloads the packages of package-lock.json to DIR/node_modules and checks their hashes: python3 fetch.py DIR.

Needs no npm. Does nothing if they are there. Exit status 77: the registry cannot be reached.
"""

import base64
import hashlib
import io
import json
import pathlib
import sys
import tarfile
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77


def main():
    target = pathlib.Path(sys.argv[1]) / "node_modules"
    packages = json.loads((HERE / "package-lock.json").read_text())["packages"]
    for path, package in packages.items():
        if not path:
            continue
        name = path.removeprefix("node_modules/")
        place = target / name
        stamp = place / ".integrity"
        if stamp.exists() and stamp.read_text() == package["integrity"]:
            continue
        address = f"https://registry.npmjs.org/{name}/-/{name}-{package['version']}.tgz"
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                archive = answer.read()
        except (urllib.error.URLError, OSError) as error:
            print(f"skipped: {address} cannot be downloaded: {error}")
            sys.exit(SKIPPED)
        kind, _, expected = package["integrity"].partition("-")
        found = base64.b64encode(hashlib.new(kind, archive).digest()).decode()
        assert found == expected, f"{address} has the hash {kind}-{found}, not {package['integrity']}"
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            for member in files:
                # All files are below one folder, package/.
                inside = pathlib.PurePosixPath(member.name).parts[1:]
                assert ".." not in inside and not member.name.startswith("/"), member.name
                if not member.isfile():
                    continue
                file = place.joinpath(*inside)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(files.extractfile(member).read())
        stamp.write_text(package["integrity"])


main()
