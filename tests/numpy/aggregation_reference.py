"""Reference implementation of the averaging and robust rules in NumPy float64, for aggregate_test.py. It follows the
papers, shares no code with Fedge, and is not optimised.

x is always an (n, d) array with one update in each row, in the order of the files; the result has d values.
Updates point downhill: the new model is the old one plus a step along the aggregate.
A rule that compares sums of distances also returns whether its decision is clear. A decision is clear if the sums
are equal (then the lower index wins) or differ by more than CLEAR, relative to the larger sum. CLEAR is far above
the rounding error of a sum of squares in float64.
"""
from itertools import combinations

import numpy as np

CLEAR = 1e-9


# Means. McMahan et al. 2017, algorithm 1; Wang et al. 2020 (FedNova), section 4.

def fedavg(x, weights):
    """Returns sum p_k x_k with p_k = weight_k / sum of weights."""
    p = np.asarray(weights, dtype=np.float64) / np.sum(np.asarray(weights, dtype=np.float64))
    return p @ x


def uniform_mean(x):
    return x.sum(axis=0) / len(x)


def fednova(x, weights, steps):
    """Returns tau_eff sum p_k x_k / tau_k with tau_eff = sum p_k tau_k. For plain SGD, |a_k|_1 = tau_k."""
    p = np.asarray(weights, dtype=np.float64) / np.sum(np.asarray(weights, dtype=np.float64))
    tau = np.asarray(steps, dtype=np.float64)
    return (p @ tau) * ((p / tau) @ x)


# First steps of the server optimizers, which are added to the model. m_0 = v_0 = 0, but the adaptive
# optimizers have v_0 = tau^2. Hsu et al. 2019; Reddi et al. 2021, algorithm 2; no bias correction.

def fedavgm_step(delta, learning_rate, momentum, nesterov=False):
    v = momentum * np.zeros_like(delta) + delta
    return learning_rate * (delta + momentum * v if nesterov else v)


def adaptive_step(kind, delta, learning_rate, beta1, beta2, tau):
    m = (1 - beta1) * delta
    v0 = tau * tau
    square = delta * delta
    if kind == "fedadagrad":
        v = v0 + square
    elif kind == "fedyogi":
        v = v0 - (1 - beta2) * square * np.sign(v0 - square)
    elif kind == "fedadam":
        v = beta2 * v0 + (1 - beta2) * square
    else:
        raise ValueError(kind)
    return learning_rate * m / (np.sqrt(v) + tau)


# By coordinate. Yin et al. 2018, definitions 1 and 2.

def median(x):
    """Returns the median; for an even n, the mean of the two middle values."""
    ordered = np.sort(x, axis=0)
    n = len(x)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2


def trimmed_mean(x, trim):
    """Returns each coordinate's mean without its `trim` lowest and `trim` highest values."""
    kept = np.sort(x, axis=0)[trim:len(x) - trim]
    return kept.sum(axis=0) / len(kept)


# By distance. Blanchard et al. 2017 (Krum), section 4; El Mhamdi et al. 2018 (Bulyan), section 4.

def square_distances(x):
    n = len(x)
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1, n):
            d[i, j] = d[j, i] = np.sum((x[i] - x[j]) ** 2)
    return d


def krum_scores(d, members, neighbours):
    """Returns, for each member, the sum of its `neighbours` smallest squared distances to other members."""
    scores = []
    for i in members:
        others = sorted(d[i, j] for j in members if j != i)
        scores.append(sum(others[:neighbours]))
    return np.array(scores)


def lowest(scores, count):
    """Returns the indices of the `count` lowest scores, ties to the lower index, and whether this is clear."""
    order = np.argsort(scores, kind="stable")
    if count >= len(scores):
        return order, True
    inside, outside = scores[order[count - 1]], scores[order[count]]
    return order[:count], bool(outside == inside or outside - inside > CLEAR * outside)


def krum(x, byzantine):
    """Returns (index of the update with the lowest score, whether clear); uses n - f - 2 neighbours."""
    n = len(x)
    scores = krum_scores(square_distances(x), range(n), n - byzantine - 2)
    order, clear = lowest(scores, 1)
    return int(order[0]), clear


def multi_krum(x, byzantine, select=None):
    """Returns (mean of the `select` updates with the lowest scores, whether clear); default n - f. Scores once."""
    n = len(x)
    scores = krum_scores(square_distances(x), range(n), n - byzantine - 2)
    order, clear = lowest(scores, n - byzantine if select is None else select)
    return uniform_mean(x[np.sort(order)]), clear


def bulyan_selection(x, byzantine):
    """Returns the n - 2f updates that repeated Krum removes from the set, and whether every choice is clear. Krum
    uses |set| - f - 2 neighbours, at least one."""
    d = square_distances(x)
    remaining, chosen, all_clear = list(range(len(x))), [], True
    for _ in range(len(x) - 2 * byzantine):
        scores = krum_scores(d, remaining, max(1, len(remaining) - byzantine - 2))
        order, clear = lowest(scores, 1)
        # If byzantine is 0, all updates are chosen, so the order does not matter.
        all_clear = all_clear and (clear or byzantine == 0)
        chosen.append(remaining.pop(int(order[0])))
    return sorted(chosen), all_clear


def bulyan(x, byzantine):
    """Returns (low, high, whether clear): for each coordinate, the mean of the n - 4f chosen values nearest to their
    median. If a lower and a higher value are equally far from it, low uses the lower and high the higher one."""
    chosen, clear = bulyan_selection(x, byzantine)
    ordered = np.sort(x[chosen], axis=0)
    middle = median(ordered)
    count = len(chosen) - 2 * byzantine

    def nearest(towards):
        # The stable sort breaks ties by position, in ascending ("low") or descending order.
        values = ordered if towards == "low" else ordered[::-1]
        places = np.argsort(np.abs(values - middle), axis=0, kind="stable")[:count]
        return np.take_along_axis(values, places, axis=0).sum(axis=0) / count

    return nearest("low"), nearest("high"), clear


# By norm. Pillutla et al. 2022 (RFA), algorithm 2; Karimireddy et al. 2021 (centered clipping), section 4.

def geometric_median(x, weights, options):
    """Returns (z, whether clear): smoothed Weiszfeld iteration from the weighted mean, at most options["iterations"]
    steps. Ends when a step reduces the sum of distances by at most the fraction options["tolerance"].
    """
    alpha = np.asarray(weights, dtype=np.float64) / np.sum(np.asarray(weights, dtype=np.float64))
    z, last, clear = alpha @ x, np.inf, True
    for _ in range(options["iterations"]):
        distances = np.sqrt(np.sum((x - z) ** 2, axis=1))
        objective = float(alpha @ distances)
        fall, enough = last - objective, options["tolerance"] * objective
        clear = clear and (options["tolerance"] == 0 or abs(fall - enough) >= CLEAR * objective)
        if options["tolerance"] > 0 and fall <= enough:
            break
        last = objective
        beta = alpha / np.maximum(options["smoothing"], distances)
        z = (beta @ x) / beta.sum()
    return z, clear


def shrink(x, radius):
    """Returns the rows, each scaled down to the radius if it is longer."""
    norms = np.sqrt(np.sum(x * x, axis=1))
    scale = np.ones(len(x))
    long = norms > radius
    scale[long] = radius / norms[long]
    return x * scale[:, None]


def centered_clip(x, radius, iterations=1):
    """Iterates z <- z + (1/n) sum (x_i - z) min(1, radius / |x_i - z|) from z = 0, as in the first round."""
    z = np.zeros(x.shape[1])
    for _ in range(iterations):
        z = z + uniform_mean(shrink(x - z, radius))
    return z


def median_norm(x):
    return float(median(np.sqrt(np.sum(x * x, axis=1))[:, None])[0])


def clipped_mean(x, weights, radius):
    """Returns the weighted mean of x_i min(1, radius / |x_i|)."""
    return fedavg(shrink(x, radius), weights)


# Bucketing. Karimireddy, He and Jaggi 2022, algorithm 1: the rule's permutation is secret, so all are tried.

def all_bucketings(n, size):
    """Yields every division of n updates into buckets of `size`; the last bucket may be smaller."""
    if n == 0:
        yield []
        return

    def cut(left, rest_used):
        if not left:
            yield []
            return
        first, others = left[0], left[1:]
        sizes = {min(size, len(left))}
        if n % size and not rest_used:
            sizes.add(n % size)
        for take in sorted(sizes):
            if take < size and take != n % size:
                continue
            for companions in combinations(others, take - 1):
                kept = [i for i in others if i not in companions]
                for tail in cut(kept, rest_used or take < size):
                    yield [[first, *companions], *tail]

    yield from cut(list(range(n)), False)


def bucket_means(x, buckets):
    return np.stack([uniform_mean(x[bucket]) for bucket in buckets])
