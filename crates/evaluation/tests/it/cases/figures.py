"""Makes figures.json beside it, with nothing but Python's standard library and exact fractions:

    python3 figures.py > figures.json
"""

import json
import random
import sys
from fractions import Fraction as F
from itertools import combinations
from math import comb, sqrt
from statistics import NormalDist, mean, stdev

Z = NormalDist().inv_cdf(0.975)
draw = random.Random(20)


def clustered(tasks):
    tasks = [[F(s) for s in t] for t in tasks]
    n, g = sum(map(len, tasks)), len(tasks)
    m = sum(map(sum, tasks)) / n
    squares = sum(sum(s - m for s in t) ** 2 for t in tasks)
    se = sqrt(F(g, g - 1) * squares) / n
    return {"mean": float(m), "se": se, "low": max(0.0, float(m) - Z * se), "high": min(1.0, float(m) + Z * se)}


def by_every_draw(n, c, k):
    """pass@k and pass^k by going through every draw."""
    draws = list(combinations([1] * c + [0] * (n - c), k))
    return float(F(sum(any(d) for d in draws), len(draws))), float(F(sum(all(d) for d in draws), len(draws)))


means = [
    [[1], [0], [1], [1], [0]],
    [[1, 1, 1], [0, 0, 0], [1, 0, 1], [0, 0, 1]],
    [[1, 0], [1], [0, 0, 0], [1, 1, 1, 1]],
    [[draw.random() < 0.6 for _ in range(8)] for _ in range(40)],
    [[draw.random() < draw.random() for _ in range(3)] for _ in range(25)],
]
means = [[[int(s) for s in t] for t in tasks] for tasks in means]
one_each = [int(draw.random() < 0.3) for _ in range(60)]
runs = [[0.5, 0.55, 0.45], [0.1, 0.9], [0.625, 0.625, 0.5, 0.75, 0.5, 0.625, 0.75, 0.5]]
pairs = [[0.5, 0.25], [1.0, 1.0], [0.0, 0.75], [0.875, 0.5], [0.25, 0.0]]
differences = [a - b for a, b in pairs]
error = stdev(differences) / sqrt(len(differences))
json.dump(
    {
        "clustered": [{"tasks": tasks, **clustered(tasks)} for tasks in means],
        "one_each": {"scores": one_each, "se": stdev(one_each) / sqrt(len(one_each))},
        "runs": [{"accuracies": r, "sd": stdev(r)} for r in runs],
        "pass": [
            {"n": n, "c": c, "k": k, "any": by_every_draw(n, c, k)[0], "all": by_every_draw(n, c, k)[1]}
            for n in (1, 3, 5, 8)
            for c in range(n + 1)
            for k in range(1, n + 1)
        ],
        "pass_large": [
            {"n": n, "c": c, "k": k, "any": float(1 - F(comb(n - c, k), comb(n, k))), "all": float(F(comb(c, k), comb(n, k)))}
            for n, c, k in [(32, 16, 8), (200, 3, 100), (1000, 999, 500), (64, 64, 64)]
        ],
        "paired": {
            "pairs": pairs,
            "difference": mean(differences),
            "se": error,
            "low": mean(differences) - Z * error,
            "high": mean(differences) + Z * error,
        },
    },
    sys.stdout,
    indent=1,
)
