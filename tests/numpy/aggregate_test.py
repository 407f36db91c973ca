"""Compares `fedge aggregate` with NumPy: every averaging and robust rule, on ordinary and degenerate rounds.

    aggregate_test.py FEDGE [ROUND]      ROUND: only this round; a failure prints its number

Tolerances, in addition to one float32 rounding of the output (half a unit in the last place):
  means         Each contribution is rounded once, after weighting, to a multiple of 2^-fraction_bits. Tolerance:
                half of that, divided by the average weight.
  fednova       As for means, times tau_eff. In addition 2^-29 of the value: weight / steps has 29 significant bits.
  optimizers    2^-22 of the step, because the moments are float32, each with a relative error of 2^-24. In
                addition the effect of the mean's error on the step.
  robust rules  n 2^-50 of the largest value, because sums of n doubles may have another order. Iterative rules:
                this times the iterations, with the largest norm, because distances affect every value. Rules
                that select must select the same updates and have no further tolerance.
  shortened, bucketed    One more float32 rounding, of a shortened update's values and of a bucket's means.
"""
import collections
import dataclasses
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy not found (package python3-numpy)")
    sys.exit(77)  # CTest counts this exit code as skipped

sys.dont_write_bytecode = True
import aggregation_inputs as inputs
import aggregation_reference as reference
import safetensors_file
from aggregation_rounds import run, write_round

SEED = 20260
ROUNDS_A_KIND = 2
OPTIMIZER_ROUNDS = 10
LEAST_COMPARED = 10  # clear cases for each rule; with fewer, the test checks too little


@dataclasses.dataclass
class Trial:
    """The expected result of one rule: every value in [low, high] of one element of `expected`, within the slack
    and the float32 rounding of the output."""
    rule: str
    options: list
    expected: list
    slack: object
    clear: bool = True
    strategy: str = ""  # the strategy option, if it differs from the rule


def exactly(rule, options, expected, slack):
    return Trial(rule, options, [(expected, expected)], slack)


def decided(rule, options, decision, round_):
    """`decision` is (low, high, whether clear). If it is not clear, the range of the updates is expected."""
    low, high, clear = decision
    if not clear:
        low, high = round_.x.min(axis=0), round_.x.max(axis=0)
    return Trial(rule, options, [(low, high)], round_.noise(), clear)


def half_ulp(values):
    return 0.5 * np.spacing(np.abs(values).astype(np.float32)).astype(np.float64)


class Tally:
    """Counts of comparisons and largest differences, for each rule."""

    def __init__(self):
        self.compared = collections.Counter()
        self.unclear = collections.Counter()
        self.refused = collections.Counter()
        self.largest = collections.defaultdict(float)

    def print(self):
        for rule in sorted(self.compared | self.unclear):
            print(f"{rule}: {self.compared[rule]} cases compared, largest difference {self.largest[rule]:.3f} of what "
                  f"is allowed; {self.unclear[rule]} undecided"
                  + (f", {self.refused[rule]} refused" if self.refused[rule] else ""))
            assert self.compared[rule] >= LEAST_COMPARED, f"{rule}: too few cases were compared"


def check(program, round_, trial, tally):
    n, d = round_.x.shape
    label = f"{round_.name}, n {n}, d {d}: {' '.join([trial.rule, *trial.options])}"
    process, out = run(program, trial.strategy or trial.rule, trial.options, round_)
    assert process.returncode == 0, f"{label}: {process.stderr.strip()} (exit {process.returncode})"
    tensors, metadata = safetensors_file.read(out)
    assert {name: values.shape for name, values in tensors.items()} == round_.shapes, f"{label}: other tensors"
    assert metadata["num_examples"] == str(sum(round_.weights)), f"{label}: num_examples {metadata['num_examples']}"
    values = np.concatenate([part.ravel() for part in tensors.values()]).astype(np.float64)
    assert np.all(np.isfinite(values)), f"{label}: values are not finite"
    excess = min((excess_over(values, round_.model, expected, trial.slack) for expected in trial.expected), key=np.max)
    worst = int(np.argmax(excess))
    low, high = (round_.model[worst] + side[worst] for side in trial.expected[0])
    assert excess[worst] <= 1, (
        f"{label}: parameter {worst} is {values[worst]:.9g}, expected {low:.9g} to {high:.9g}; {excess[worst]:.3g} of "
        f"what is allowed, {np.count_nonzero(excess > 1)} of {d} are off")
    if not trial.clear:
        tally.unclear[trial.rule] += 1
        return
    tally.compared[trial.rule] += 1
    tally.largest[trial.rule] = max(tally.largest[trial.rule], excess[worst])


def excess_over(values, model, expected, slack):
    """Returns how far each value is outside the expected range, in units of the tolerance."""
    low, high = model + np.minimum(*expected), model + np.maximum(*expected)
    tolerance = slack + half_ulp(np.maximum(np.abs(low), np.abs(high)))
    return np.maximum(np.maximum(low - values, values - high), 0) / tolerance


# Expected results of the rules.

def means(round_, random):
    x, average = round_.x, np.mean(round_.weights)
    mean = exactly("fedavg", [], reference.fedavg(x, round_.weights), round_.mean_slack(average))
    yield dataclasses.replace(mean, strategy=str(random.choice(["fedavg", "mean"])))
    yield exactly("uniform_mean", [], reference.uniform_mean(x), round_.mean_slack(1))
    slack = np.average(round_.steps, weights=round_.weights) * round_.mean_slack(average)
    slack += 2.0**-29 * reference.fednova(np.abs(x), round_.weights, round_.steps)
    yield exactly("fednova", [], reference.fednova(x, round_.weights, round_.steps), slack)


def by_coordinate(round_, random):
    x, n = round_.x, len(round_.x)
    yield exactly("median", [], reference.median(x), 0)
    trim, options = n // 5, []
    if random.integers(4):
        trim = int(random.integers(0, (n + 1) // 2))
        options = [f"trim={trim}"]
    yield exactly("trimmed_mean", options, reference.trimmed_mean(x, trim), round_.noise())


def by_distance(round_, random):
    x, n = round_.x, len(round_.x)
    if n < 3:
        return
    byzantine, options = n // 5, []
    if random.integers(4):
        byzantine = int(random.integers(0, (n - 3) // 2 + 1))
        options = [f"byzantine={byzantine}"]
    yield krum_trial(x, byzantine, options)
    yield multi_krum_trial(round_, byzantine, options)
    select = int(random.integers(1, n + 1))
    yield multi_krum_trial(round_, byzantine, [*options, f"select={select}"], select)
    byzantine, options = min(n // 5, (n - 3) // 4), []
    if random.integers(4):
        byzantine = int(random.integers(0, (n - 3) // 4 + 1))
        options = [f"byzantine={byzantine}"]
    yield bulyan_trial(round_, byzantine, options)


def krum_trial(x, byzantine, options):
    """If the choice is not clear, the result may be any of the updates."""
    winner, clear = reference.krum(x, byzantine)
    return Trial("krum", options, [(x[i], x[i]) for i in ([winner] if clear else range(len(x)))], 0, clear)


def multi_krum_trial(round_, byzantine, options, select=None):
    mean, clear = reference.multi_krum(round_.x, byzantine, select)
    return decided("multi_krum", options, (mean, mean, clear), round_)


def bulyan_trial(round_, byzantine, options):
    return decided("bulyan", options, reference.bulyan(round_.x, byzantine), round_)


def by_norm(round_, random):
    x, norm = round_.x, reference.median_norm(round_.x)
    weiszfeld = {"iterations": int(random.integers(1, 12)), "tolerance": float(random.choice([0, 1e-6, 1e-2])),
                 "smoothing": float(random.choice([1e-6, 1e-3, 10]))}
    for options in [weiszfeld, {"iterations": 3, "tolerance": 1e-6, "smoothing": 1e-6}]:
        point, clear = reference.geometric_median(x, round_.weights, options)
        trial = decided("geometric_median", [f"{key}={value!r}" for key, value in options.items()],
                        (point, point, clear), round_)
        yield dataclasses.replace(trial, slack=options["iterations"] * round_.norm_noise())
    radius = float(random.uniform(0.05, 2) * norm) or 1.0
    iterations = int(random.integers(1, 5))
    options = [f"radius={radius!r}", f"iterations={iterations}"]
    yield exactly("centered_clip", options, reference.centered_clip(x, radius, iterations),
                  iterations * round_.norm_noise())
    yield exactly("centered_clip", [], reference.centered_clip(x, 10), round_.norm_noise())
    for options, bound in [([f"clip_norm={radius!r}"], radius), ([], norm)]:
        yield exactly("clipped_mean", options, reference.clipped_mean(x, round_.weights, bound),
                      shortened_slack(round_, bound))


def shortened_slack(round_, bound):
    return round_.norm_noise() + np.max(half_ulp(reference.shrink(round_.x, bound)), axis=0)


def shortened_then(round_, random):
    """Trials of the median of shortened updates."""
    norm = reference.median_norm(round_.x)
    radius = float(random.uniform(0.3, 1) * norm) or 1.0
    for options, bound in [([f"clip_norm={radius!r}"], radius), (["clip_to_median=true"], norm)]:
        expected = reference.median(reference.shrink(round_.x, bound))
        trial = exactly("shortened, then median", options, expected, shortened_slack(round_, bound))
        yield dataclasses.replace(trial, strategy="median")


def optimizer_trials(round_, random):
    """Trials of each server optimizer's first step, evaluated at both ends of the mean's error."""
    mean, error = reference.fedavg(round_.x, round_.weights), round_.mean_slack(np.mean(round_.weights))
    rate, beta, nesterov = 10 ** random.uniform(-3, 0.5), float(random.choice([0, 0.5, 0.9])), bool(random.integers(2))
    beta1, beta2 = float(random.choice([0, 0.5, 0.9])), float(random.choice([0, 0.5, 0.99]))
    tau = float(random.choice([1e-9, 1e-3, 0.1]))
    rate_option = f"learning_rate={rate!r}"
    steps = [
        ("fedavg with learning_rate", [rate_option], lambda delta: rate * delta),
        ("fedavgm", [], lambda delta: reference.fedavgm_step(delta, 1, 0.9)),
        ("fedavgm", [rate_option, f"beta={beta}", f"nesterov={str(nesterov).lower()}"],
         lambda delta: reference.fedavgm_step(delta, rate, beta, nesterov)),
        ("fedadagrad", [], lambda delta: reference.adaptive_step("fedadagrad", delta, 0.01, 0, None, 1e-3)),
        ("fedadagrad", [rate_option, f"beta1={beta1}", f"tau={tau}"],
         lambda delta: reference.adaptive_step("fedadagrad", delta, rate, beta1, None, tau)),
    ]
    for kind in ["fedadam", "fedyogi"]:
        steps += [
            (kind, [], lambda delta, kind=kind: reference.adaptive_step(kind, delta, 0.01, 0.9, 0.99, 1e-3)),
            (kind, [rate_option, f"beta1={beta1}", f"beta2={beta2}", f"tau={tau}"],
             lambda delta, kind=kind: reference.adaptive_step(kind, delta, rate, beta1, beta2, tau))]
    for rule, options, step in steps:
        ends = np.stack([step(mean + shift) for shift in (-error, 0, error)])
        yield Trial(rule, options, [(ends.min(axis=0), ends.max(axis=0))], np.max(np.abs(ends), axis=0) * 2.0**-22,
                    strategy=rule.split()[0])


def bucketed(round_, size):
    """Trials of rules on bucket means. The rule's bucketing is secret, so every bucketing is a valid result."""
    choices = [reference.bucket_means(round_.x, buckets) for buckets in reference.all_bucketings(len(round_.x), size)]
    slack = round_.noise() + half_ulp(np.max(np.abs(round_.x), axis=0))
    medians = [reference.median(x) for x in choices]
    yield Trial("bucketed, then median", [f"bucket_size={size}"], [(x, x) for x in medians], slack, strategy="median")
    count = len(choices[0])
    if count >= 3:
        # The order of the buckets is secret too, so any bucket with the lowest score is valid.
        scores = [reference.krum_scores(reference.square_distances(x), range(count), count - 2) for x in choices]
        winners = [row for x, score in zip(choices, scores) for row in x[score == score.min()]]
        yield Trial("bucketed, then krum", [f"bucket_size={size}", "byzantine=0"], [(x, x) for x in winners], slack,
                    strategy="krum")


def at_minimum(round_, byzantine):
    """Trials of the rules whose minimum number of updates is the size of the round."""
    x, options = round_.x, [f"byzantine={byzantine}"]
    if len(x) == 2 * byzantine + 3:
        yield krum_trial(x, byzantine, options)
        yield multi_krum_trial(round_, byzantine, options)
    if len(x) == 4 * byzantine + 3:
        yield bulyan_trial(round_, byzantine, options)
    if len(x) == 2 * byzantine + 1:
        yield exactly("trimmed_mean", [f"trim={byzantine}"], reference.trimmed_mean(x, byzantine), round_.noise())


# The rounds.

def compare_rounds(program, only, tally):
    """Compares rounds of 1 to 25 updates, of every kind, with few and with many parameters."""
    for number in range(len(inputs.KINDS) * ROUNDS_A_KIND):
        if only is not None and number != only:
            continue
        kind, n = inputs.KINDS[number % len(inputs.KINDS)], 1 + number * 7 % 25
        random = np.random.default_rng([SEED, number])
        d = 1 if number % 17 == 3 else int(10 ** random.uniform(0, 3.7))
        with tempfile.TemporaryDirectory() as directory:
            x = kind(random, n, d)
            round_ = write_round(f"{kind.__name__} (round {number} of seed {SEED})", directory, x, random)
            for family in [means, by_coordinate, by_distance, by_norm, shortened_then]:
                for trial in family(round_, random):
                    check(program, round_, trial, tally)


def compare_optimizers(program, tally):
    for number in range(OPTIMIZER_ROUNDS):
        random = np.random.default_rng([SEED, 1000 + number])
        n, d = int(random.integers(1, 9)), int(10 ** random.uniform(0, 3))
        kind = [inputs.honest, inputs.magnitudes, inputs.wide, inputs.zeros, inputs.grid][number % 5]
        with tempfile.TemporaryDirectory() as directory:
            name = f"{kind.__name__} (optimizer round {number} of seed {SEED})"
            round_ = write_round(name, directory, kind(random, n, d), random)
            for trial in optimizer_trials(round_, random):
                check(program, round_, trial, tally)


def compare_buckets(program, tally):
    sizes = [(3, 2), (4, 2), (5, 2), (6, 2), (7, 2), (6, 3), (7, 3), (8, 3), (4, 4), (3, 8)]
    for number, (n, size) in enumerate(2 * sizes):
        random = np.random.default_rng([SEED, 2000 + number])
        with tempfile.TemporaryDirectory() as directory:
            name = f"honest (buckets, {number} of seed {SEED})"
            round_ = write_round(name, directory, inputs.honest(random, n, 40), random)
            for trial in bucketed(round_, size):
                check(program, round_, trial, tally)


def compare_minima(program, tally):
    """A rule accepts its minimum number of updates; with one update fewer, its error names the minimum."""
    for byzantine in range(4):
        for needed in sorted({2 * byzantine + 1, 2 * byzantine + 3, 4 * byzantine + 3}):
            random = np.random.default_rng([SEED, 3000 + 100 * byzantine + needed])
            with tempfile.TemporaryDirectory() as directory:
                name = f"sign_flip (minimum {needed} for {byzantine}, seed {SEED})"
                round_ = write_round(name, directory, inputs.sign_flip(random, needed, 30), random)
                fewer = dataclasses.replace(round_, x=round_.x[:-1], weights=round_.weights[:-1])
                for trial in at_minimum(round_, byzantine):
                    check(program, round_, trial, tally)
                    if needed > 1:
                        check_too_few(program, fewer, trial, tally)


def check_too_few(program, round_, trial, tally):
    n = len(round_.x)
    process, _ = run(program, trial.rule, trial.options, round_)
    said = process.stderr
    assert process.returncode == 1 and said.startswith(f"fedge: {trial.rule} ") and (
        f"requires at least {n + 1} updates; this round has {n}\n" in said), (
            f"{round_.name}: with {n} {trial.rule} said {said!r} (exit {process.returncode})")
    tally.refused[trial.rule] += 1


def compare_crowd(program, tally):
    """Compares rounds with more updates than the vector kernels process at a time."""
    random = np.random.default_rng([SEED, 5000])
    with tempfile.TemporaryDirectory() as directory:
        round_ = write_round(f"colluders (crowd, seed {SEED})", directory, inputs.colluders(random, 130, 77), random)
        for family in [means, by_coordinate, by_distance, by_norm, shortened_then]:
            for trial in family(round_, random):
                check(program, round_, trial, tally)


def compare_bits(program, tally):
    """Compares rounds with more parameters than the program reads at a time. The bits must not depend on threads or
    memory and, if sums are exact or sorted, not on the order of the files."""
    random = np.random.default_rng([SEED, 4000])
    with tempfile.TemporaryDirectory() as directory:
        x = inputs.colluders(random, 9, 70_001)
        round_ = write_round(f"colluders (large, seed {SEED})", directory, x, random)
        trials = [*means(round_, random), *by_coordinate(round_, random), *by_distance(round_, random),
                  *by_norm(round_, random)]
        for trial in trials:
            check(program, round_, trial, tally)
            first = bits_of(program, round_, trial)
            less = [] if trial.rule in ("fedavg", "uniform_mean", "fednova") else ["memory_mb=1"]
            for threads in [1, 3]:
                other = dataclasses.replace(round_, threads=threads)
                again = bits_of(program, other, dataclasses.replace(trial, options=trial.options + less))
                assert again == first, f"{round_.name}: {trial.rule} has other bits with {threads} threads"
            if trial.rule in ("fedavg", "uniform_mean", "fednova", "median", "trimmed_mean", "krum"):
                shuffled = dataclasses.replace(round_, order=random.permutation(len(x)).tolist())
                assert bits_of(program, shuffled, trial) == first, f"{round_.name}: {trial.rule} depends on the order"


def bits_of(program, round_, trial):
    process, out = run(program, trial.strategy or trial.rule, trial.options, round_)
    assert process.returncode == 0, process.stderr
    with open(out, "rb") as file:
        return file.read()


def main():
    program, only = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None
    tally = Tally()
    compare_rounds(program, only, tally)
    if only is not None:
        return
    for compare in [compare_optimizers, compare_buckets, compare_minima, compare_crowd, compare_bits]:
        compare(program, tally)
    tally.print()


main()
