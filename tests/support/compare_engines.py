"""Runs queries over a dataset in DuckDB and in Spark, and compares their rows.

usage: compare_engines.py SCRIPTS DATASET KEY OLD NEW QUERY.sql...
Prints for each query its name and the number of its rows; fails where the engines differ."""

import math
import sys
from pathlib import Path

scripts, dataset, *parameters = sys.argv[1:6]
sys.path.insert(0, scripts)

import query  # noqa: E402


def is_same(one, other):
    one, other = query.plain(one), query.plain(other)
    if isinstance(one, float) or isinstance(other, float):
        # Two libraries of mathematics differ in the last digit.
        return None not in (one, other) and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return one == other


def main():
    engines = [query.DuckDb(dataset, *parameters), query.Spark(dataset, *parameters, "local[2]")]
    failed = False
    for file in sys.argv[6:]:
        text = query.query_text(file)
        (names, rows), (other_names, other_rows) = [engine.run(text) for engine in engines]
        same = names == other_names and len(rows) == len(other_rows)
        same = same and all(is_same(*cells) for pair in zip(rows, other_rows) for cells in zip(*pair))
        if not same:
            failed = True
            print(f"{file}: DuckDB and Spark differ", names, other_names, *rows, "Spark:", *other_rows, sep="\n", file=sys.stderr)
        print(Path(file).stem, len(rows))
    sys.exit(failed)


main()
