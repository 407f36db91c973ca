"""Tests the README's pictures and scripts/readme_picture.py, which draws them. The committed files must be well-formed,
small and free of paths, and show the rounds that the program prints.

    readme_picture_test.py BIN SOURCE_DIRECTORY
"""
import os
import pathlib
import re
import sys
import xml.etree.ElementTree

SKIPPED = 77
MAX_BYTES = 40_000
SVG = "{http://www.w3.org/2000/svg}"


def shown_lines(picture):
    """Returns the lines of text, from top to bottom."""
    return ["".join(text.itertext()).strip() for text in xml.etree.ElementTree.fromstring(picture).iter(SVG + "text")]


def rounds(picture):
    return [line for line in shown_lines(picture) if re.match(r"\d+ +\d+\.\d+ % ", line)]


def line_path(picture):
    (path,) = [path.get("d") for path in xml.etree.ElementTree.fromstring(picture).iter(SVG + "path") if path.get("class") == "l s1"]
    return path


def points(path):
    return [float(number) for number in re.findall(r"[\d.]+", path)]


def check_files(committed):
    for name, picture in committed.items():
        assert len(picture.encode()) < MAX_BYTES, f"{name} has {len(picture.encode())} bytes"
        assert "prefers-color-scheme: dark" in picture, name
        root = xml.etree.ElementTree.fromstring(picture)
        assert root.tag == SVG + "svg" and root.find(SVG + "title").text and root.find(SVG + "desc").text, name
        for text in shown_lines(picture):
            assert not re.search(r"(^|\s)/", text), f"{name} shows an absolute path: {text}"
        assert not re.search(r"(href|src)=|url\(|<script", picture), f"{name} is not self-contained"
    assert len(rounds(committed["demo.svg"])) == 5, shown_lines(committed["demo.svg"])


def check_screen(script):
    """Checks that an erased progress bar is not in the picture."""
    raw = "run a: 2 rounds\r\n[....] 0 of 2 rounds\r\x1b[K   1  50.00 %\r\n[##..] 1 of 2 rounds, about 3.0 s left\r\x1b[K   2  60.00 %\r\n"
    assert script.screen(raw) == ["run a: 2 rounds", "   1  50.00 %", "   2  60.00 %"], script.screen(raw)
    hostile = script.draw_terminal(["<b>&"])
    assert "<b>&" in shown_lines(hostile), hostile


def main():
    programs, source = map(pathlib.Path, sys.argv[1:])
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(source / "scripts"))
    import docs_test  # pylint: disable=import-outside-toplevel
    import readme_picture  # pylint: disable=import-error,import-outside-toplevel
    committed = {name: (source / "docs/images" / name).read_text() for name in ("demo.svg", "accuracy.svg")}
    check_files(committed)
    check_screen(readme_picture)
    if not os.path.exists("/usr/share/datasets/fashion-mnist"):
        print("skipped: Fashion-MNIST not found (package dataset-fashion-mnist)")
        sys.exit(SKIPPED)
    today = readme_picture.pictures(programs)
    again = "; run scripts/readme_picture.py"
    # Kernels for other processors round otherwise (docs/guide/reproduce.md), so that numbers differ a little.
    drawn, kept = rounds(today["demo.svg"]), rounds(committed["demo.svg"])
    assert len(drawn) == len(kept) and all(map(docs_test.same_line, kept, drawn)), \
        f"{shown_lines(today['demo.svg'])}{again}"
    drawn, kept = points(line_path(today["accuracy.svg"])), points(line_path(committed["accuracy.svg"]))
    assert len(drawn) == len(kept) and all(abs(a - b) < 4 for a, b in zip(drawn, kept)), \
        f"accuracy.svg is out of date{again}"


main()
