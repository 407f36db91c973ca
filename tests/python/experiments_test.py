"""Tests bench/experiments/run.py with a program in place of fedge-sim whose accuracy the test defines.

    experiments_test.py SOURCE_DIRECTORY
"""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])

# The accuracy depends on the settings and the seed. On the validation samples 0.1 with the cosine schedule is the best
# learning rate, and on the test samples it would be 1. With 1, a tuning run begins best and ends early.
SIMULATOR = f"""#!{sys.executable}
import json, pathlib, sys
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
settings = dict(x.split("=", 1) for flag, x in zip(sys.argv, sys.argv[1:]) if flag == "--set")
rate, seed = float(settings["rate"]), int(settings["run.seed"])
cosine = settings.get("schedule") == "cosine"
if "data.validation" in settings:
    accuracy = 0.5 - abs(rate - 0.1) / 10 + 0.01 * cosine
else:
    accuracy = 0.4 + rate / 10 + 0.1 * seed + float(settings.get("gain", 0)) * (1 + 0.1 * seed)
early = "data.validation" in settings and rate == 1 or settings.get("ends") == str(seed)
rounds = [dict(test_accuracy=0.9 if early else accuracy, bits_per_byte=2 - accuracy, bytes_up=1000000)]
rounds *= 2 if early else 3
(out / "run.toml").write_text("[run]" + chr(10) + "rounds = 3" + chr(10))
(out / "metrics.jsonl").write_text("".join(json.dumps(r) + chr(10) for r in rounds))
(out / "model.safetensors").write_text("")
"""

EXPERIMENT = {
    "run_file": "run.toml",
    "settings": {"run.rounds": 100},
    "tuned": {
        "by": "test_accuracy",
        "settings": {"run.rounds": 20},
        "grid": [
            {"name": "learning rate", "setting": "rate", "values": [0.01, 0.1, 1]},
            {"name": "schedule", "values": [{"name": "constant", "settings": {}},
                                            {"name": "cosine", "settings": {"schedule": "cosine"}}]},
        ],
    },
    "columns": ["tuned", "final"],
    "against": "plain",
    "paired": ["final", "up"],
    "rows": [
        {"name": "plain", "settings": {}},
        {"name": "better", "settings": {"gain": 0.1}},
        {"name": "the same", "settings": {"gain": 0.0}, "against": "better"},
    ],
}


def run(directory, experiment, *arguments):
    (directory / "experiment.json").write_text(json.dumps(experiment))
    return subprocess.run([sys.executable, ROOT / "bench/experiments/run.py", directory / "experiment", "--programs",
                           directory, "--out", directory / "out", *arguments],
                          capture_output=True, text=True, check=False)


def settings_of(directory):
    return {str(path.parent.relative_to(directory / "out")): json.loads(path.read_text())
            for path in (directory / "out").glob("*/*/settings.json")}


def check_tuning(directory):
    done = run(directory, EXPERIMENT)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == ["| run | learning rate, schedule | final accuracy, % |", "| --- | --- | --- |",
                         "| plain | 0.1, cosine | 61.00 ± 10.00 |"], done.stdout
    runs = settings_of(directory)
    tuning = {name: settings for name, settings in runs.items() if "tuning" in name}
    assert len(tuning) == 3 * 6 and all(name.endswith("/1") for name in tuning), sorted(tuning)
    for name, settings in runs.items():
        held_out, rounds = (0.1, 20) if name in tuning else (None, 100)
        assert settings.get("data.validation") == held_out and settings["run.rounds"] == rounds, (name, settings)
        if name not in tuning:
            assert settings["rate"] == 0.1 and settings["schedule"] == "cosine", (name, settings)
    assert len(runs) == len(tuning) + 3 * 3, sorted(runs)


def check_differences(directory):
    lines = run(directory, EXPERIMENT).stdout.splitlines()
    at = lines.index("Differences on the same seeds (mean ± standard error; bold: significant at 5 %):")
    # 11, 12 and 13 points: the standard error is 1 / sqrt(3), and 12 > 4.303 * 0.577.
    assert lines[at + 2:] == ["| run | minus | final accuracy, % | upload, MB |", "| --- | --- | --- | --- |",
                              "| better | plain | **+12.00** ± 0.58 | +0.0 ± 0.0 |",
                              "| the same | better | **-12.00** ± 0.58 | +0.0 ± 0.0 |"], lines
    # With two seeds: 11 and 12 points, and 11.5 > 12.706 * 0.5.
    two = run(directory, EXPERIMENT, "--seeds", "2").stdout
    assert "| better | plain | **+11.50** ± 0.50 | +0.0 ± 0.0 |" in two, two
    one = run(directory, EXPERIMENT, "--seeds", "1").stdout
    assert "| better | plain | +11.00 | +0.0 |" in one, one


def check_single(directory):
    """One tuned setting, chosen by a metric that shall be small."""
    single = {key: value for key, value in EXPERIMENT.items() if key not in ("against", "paired")}
    single["rows"] = EXPERIMENT["rows"][:1]
    single["tuned"] = {"name": "learning rate", "setting": "rate", "values": [1, 0.01, 0.1], "by": "bits_per_byte"}
    done = run(directory, single, "--quick", "--jobs", "2")
    assert done.stdout.splitlines() == ["| run | learning rate | final accuracy, % |", "| --- | --- | --- |",
                                        "| plain | 0.1 | 61.00 ± 10.00 |"], done.stdout + done.stderr
    assert settings_of(directory)["plain-tuning-0.1/1"]["run.rounds"] == 3


def check_early_end(directory):
    early = {key: value for key, value in EXPERIMENT.items() if key not in ("against", "paired", "tuned")}
    early |= {"settings": {"rate": 0.1}, "columns": ["final", "best"],
              "rows": [{"name": "second seed", "settings": {"ends": 2}}]}
    row = run(directory, early).stdout.splitlines()[2]
    assert row == "| second seed | 1 of 3 ended early | 70.67 ± 19.50 |", row
    row = run(directory, early, "--seeds", "1").stdout.splitlines()[2]
    assert row == "| second seed | 51.00 | 51.00 |", row


def check_refusals(directory):
    wrong = dict(EXPERIMENT, against="nobody")
    done = run(directory, wrong)
    assert done.returncode == 1 and 'against: there is no row "nobody"' in done.stderr, done.stderr
    done = run(directory, {key: value for key, value in EXPERIMENT.items() if key != "paired"})
    assert done.returncode == 1 and '"paired"' in done.stderr, done.stderr


def main():
    for check in (check_tuning, check_differences, check_single, check_early_end, check_refusals):
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name)
            (directory / "fedge-sim").write_text(SIMULATOR)
            (directory / "fedge-sim").chmod(0o755)
            check(directory)


main()
