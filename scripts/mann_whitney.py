"""The Mann-Whitney test as `report --against` and `gate` make it: src/statistics/rank_test.rs is the same in Rust."""

import math
from functools import lru_cache
from itertools import groupby

# The least number of measurements on each side.
MIN_RUNS = 3
# Up to this number on each side the orders are counted out, ties and all.
MAX_EXACT = 20


def two_sided(old, new):
    """The two-sided p-value of two lists of measurements; None with fewer than three on a side."""
    if min(len(old), len(new)) < MIN_RUNS:
        return None
    both = sorted([(value, 0) for value in old] + [(value, 1) for value in new])
    ties = [[side for _, side in group] for _, group in groupby(both, key=lambda pair: pair[0])]
    wins, smaller = 0, 0
    for tied in ties:
        in_new = sum(tied)
        in_old = len(tied) - in_new
        wins += in_new * (2 * smaller + in_old)
        smaller += in_old
    sizes = tuple(len(tied) for tied in ties)
    most = 2 * len(old) * len(new)
    if max(len(old), len(new)) > MAX_EXACT:
        tail = approximate(sizes, len(old), len(new), max(wins, most - wins))
    elif wins <= most // 2:
        tail = exact(sizes, len(new), wins)
    else:
        tail = exact(sizes[::-1], len(new), most - wins)
    return min(2 * tail, 1.0)


def approximate(sizes, old, new, doubled_wins):
    """The greater tail by the normal approximation, corrected for ties and for whole numbers."""
    every = old + new
    tied = sum(size**3 - size for size in sizes)
    variance = old * new / 12 * (every + 1 - tied / (every * (every - 1)))
    if variance <= 0:
        return 1.0
    return math.erfc((doubled_wins / 2 - old * new / 2 - 0.5) / math.sqrt(variance) / math.sqrt(2)) / 2


def exact(sizes, new, doubled_wins):
    """Of all ways to choose `new` of the values, in groups of equal ones, the share with at most so many wins."""
    ways, digit = ways_by_wins(sizes, new)
    tail = ways & ((1 << digit * (doubled_wins + 1)) - 1)
    count = 0
    while tail:
        count += tail & ((1 << digit) - 1)
        tail >>= digit
    return count / math.comb(sum(sizes), new)


@lru_cache(maxsize=64)
def ways_by_wins(sizes, new):
    """The ways for each number of doubled wins, as the digits of one large number, and the bits of a digit."""
    digit = math.comb(sum(sizes), new).bit_length() + 1
    ways, before = [1] + [0] * new, 0
    for size in sizes:
        # From the back, so that a group is chosen from once.
        for n in range(new, 0, -1):
            for chosen in range(1, min(n, size) + 1):
                smaller = before - (n - chosen)
                if smaller >= 0:
                    wins = chosen * (2 * smaller + size - chosen)
                    ways[n] += ways[n - chosen] * math.comb(size, chosen) << digit * wins
        before += size
    return ways[new], digit
