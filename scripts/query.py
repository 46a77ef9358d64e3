"""Runs one SQL file over the views of a dataset in DuckDB. scripts/query starts it and describes the arguments."""

import csv
import re
import sys
from pathlib import Path

import duckdb

TABLES = """trace source tag process thread slice sched thread_state counter method_profile method_call launch
rejected""".split()
# The traces that a query compares: those whose tag has one of the two values.
SIDE = """SELECT tag.trace_id, tag.value = parameter.new_value AS is_new
FROM tag JOIN parameter ON tag.key = parameter.tag_key
WHERE tag.value = parameter.new_value OR tag.value = parameter.old_value"""
# What several queries share.
INCLUDES = Path(__file__).parent.parent / "queries/include"


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def escaped(path):
    """A path in which no character stands for others."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in path)


def connect(dataset, key, old, new):
    connection = duckdb.connect()
    for table in TABLES:
        files = quoted(f"{escaped(dataset)}/day=*/part=*/{table}.parquet")
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet({files}, hive_partitioning = false)")
    connection.execute(
        f"CREATE VIEW parameter AS SELECT {quoted(key)} AS tag_key, {quoted(old)} AS old_value, "
        f"{quoted(new)} AS new_value"
    )
    connection.execute(f"CREATE VIEW side AS {SIDE}")
    return connection


def query_text(file):
    """The text of a query. A line `-- include NAME` stands for the file NAME.sql of queries/include."""
    included = lambda line: (INCLUDES / f"{line[1]}.sql").read_text().rstrip()
    return re.sub(r"^-- include ([a-z-]+)$", included, Path(file).read_text(), flags=re.MULTILINE)


def cell(value):
    return "" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def printable(text):
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def print_table(names, rows):
    lines = [names] + [[printable(cell(value)) for value in row] for row in rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(names))]
    is_number = [all(isinstance(row[at], (int, float, type(None))) for row in rows) for at in range(len(names))]
    for line in lines:
        columns = zip(line, widths, is_number)
        print("  ".join(text.rjust(width) if number else text.ljust(width) for text, width, number in columns).rstrip())


def main():
    dataset, sql, form, key, old, new = sys.argv[1:]
    try:
        result = connect(dataset, key, old, new).execute(query_text(sql))
    except (duckdb.Error, OSError) as error:
        sys.exit(f"query: {error}")
    names, rows = [column[0] for column in result.description], result.fetchall()
    if form == "csv":
        writer = csv.writer(sys.stdout)
        writer.writerow(names)
        writer.writerows(rows)
    else:
        print_table(names, rows)


main()
