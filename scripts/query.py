"""Runs a query over the views of a dataset, in DuckDB or in Spark. scripts/query starts it and describes the arguments."""

import csv
import json
import os
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import plot

TABLES = """trace source tag process thread slice sched thread_state counter method_profile method_call launch frame cause sample
event rejected""".split()
# The traces that a query compares: those whose tag has one of the two values.
SIDE = """SELECT tag.trace_id, tag.value = parameter.new_value AS is_new
FROM tag JOIN parameter ON tag.key = parameter.tag_key
WHERE tag.value = parameter.new_value OR tag.value = parameter.old_value"""
# Parts of several queries.
INCLUDES = Path(__file__).parent.parent / "queries/include"


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def tables_of(text):
    """The tables that a query names."""
    return set(re.findall(r"\w+", text)) & set(TABLES)


class DuckDb:
    """The views of a dataset in DuckDB, in this process."""

    def __init__(self, dataset, key, old, new):
        import duckdb

        self.errors = duckdb.Error
        self.connection = duckdb.connect()
        # A path in which no character stands for others.
        self.place = re.sub(r"[*?\[]", lambda char: f"[{char[0]}]", dataset)
        self.views = set()
        parameter = f"SELECT {quoted(key)} AS tag_key, {quoted(old)} AS old_value, {quoted(new)} AS new_value"
        self.connection.execute(f"CREATE VIEW parameter AS {parameter}")
        self.make_views("tag")
        self.connection.execute(f"CREATE VIEW side AS {SIDE}")

    def make_views(self, text):
        """Makes the views of the tables that a query names: each costs a look at all parts."""
        for table in tables_of(text) - self.views:
            files = quoted(f"{self.place}/day=*/part=*/{table}.parquet")
            rows = f"SELECT * FROM read_parquet({files}, hive_partitioning = false, union_by_name = true)"
            self.connection.execute(f"CREATE VIEW {table} AS {rows}")
            self.views.add(table)

    def run(self, text):
        """Returns the names of the columns, and the rows."""
        self.make_views(text)
        result = self.connection.execute(text)
        return [column[0] for column in result.description], result.fetchall()


class Spark:
    """The views of a dataset in Spark: in this process (`local[*]`), or on the cluster with this master."""

    def __init__(self, dataset, key, old, new, master="local[*]"):
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException
        from spark_session import spark_session

        self.errors = (PySparkException, Py4JJavaError)
        # As many partitions as tables of one laptop need; on a cluster its own setting holds.
        self.session = spark_session("tracebridge query", master, spark_sql_shuffle_partitions="4")
        place = dataset if "://" in dataset else f"file://{Path(dataset).absolute()}"
        # A path in which no character stands for others.
        self.place = re.sub(r"[*?\[\]{}\\]", lambda char: "\\" + char[0], place)
        self.views = set()
        self.make_views("tag")
        parameter = "SELECT :key AS tag_key, :old AS old_value, :new AS new_value"
        values = {"key": key, "old": old, "new": new}
        self.session.sql(parameter, args=values).createOrReplaceTempView("parameter")
        self.session.sql(SIDE).createOrReplaceTempView("side")

    def make_views(self, text):
        """Makes the views of the tables that a query names: each costs a job, which reads the columns' names."""
        for table in tables_of(text) - self.views:
            rows = self.session.read.parquet(f"{self.place}/day=*/part=*/{table}.parquet")
            rows.createOrReplaceTempView(table)
            self.views.add(table)

    def run(self, text):
        """Returns the names of the columns, and the rows."""
        self.make_views(text)
        result = self.session.sql(text)
        return result.columns, [tuple(row) for row in result.collect()]


def query_text(file):
    """The text of a query. A line `-- include NAME` stands for the file NAME.sql of queries/include."""
    included = lambda line: (INCLUDES / f"{line[1]}.sql").read_text().rstrip()
    return re.sub(r"^-- include ([a-z-]+)$", included, Path(file).read_text(), flags=re.MULTILINE)


def p_values(pairs):
    """The p-values of pairs of lists, which the program computes as for `report --against` and `gate`."""
    program = os.environ["TRACEBRIDGE_HOST_BINARY"]
    lines = "".join(json.dumps([list(side) for side in pair]) + "\n" for pair in pairs)
    try:
        done = subprocess.run([program, "dataset", "p-values"], input=lines, stdout=subprocess.PIPE, check=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"query: {error}: TRACEBRIDGE_HOST_BINARY names the program that computes p-values")
    return [json.loads(line) for line in done.stdout.splitlines()]


def tested(text, names, rows):
    """The same with p_value in place of the times of both sides, the smallest first, and as many rows as the query says."""
    if names[-2:] == ["old_times", "new_times"]:
        names = [*names[:-2], "p_value"]
        rows = [[*row[:-2], p_value] for row, p_value in zip(rows, p_values([row[-2:] for row in rows]))]
        rows.sort(key=lambda row: row[-1])
    most = re.search(r"^-- rows (\d+)$", text, flags=re.MULTILINE)
    return names, rows[: int(most[1])] if most else rows


def check_sides(text, opened, key, old, new):
    """Ends the program if a query compares two values of a tag and there are no traces of one. Says where both are not used."""
    compares = re.search(r"\b(FROM|JOIN)\s+side\b", text) and not re.search(r"\bside AS \(", text)
    if not compares and not re.search(r"\b(old|new)_value\b", text):
        if old or new:
            print("query: this query compares no two sets of traces: --old and --new are not used", file=sys.stderr)
        return
    _, rows = opened.run(f"SELECT DISTINCT value FROM tag WHERE key = {quoted(key)} ORDER BY value")
    values = [row[0] for row in rows]
    there = f"the values of {key} are: {', '.join(values)}" if values else f"no trace has the tag {key} (--key)"
    for option, value in [("--old", old), ("--new", new)]:
        if not value:
            sys.exit(f"query: this query compares two sets of traces: {option} names one by its {key}; {there}")
        if value not in values:
            sys.exit(f"query: {option} {value}: no trace has {key}={value}; {there}")


def plain(value):
    """A number with decimal places as a float, whatever the engine counts in."""
    return float(value) if isinstance(value, Decimal) else value


def cell(value):
    return "" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def printable(text):
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def csv_cell(value):
    """A value for a spreadsheet: no text that it would run as a formula, and no control characters."""
    if not isinstance(value, str):
        return value
    is_formula = value[:1] in tuple("=+-@\t\r") and not re.fullmatch(r"[-+]?[0-9.]*[0-9][0-9.]*", value)
    text = "\n".join(printable(line) for line in value.split("\n"))
    return "'" + text if is_formula else text


def print_table(names, rows):
    lines = [names] + [[printable(cell(value)) for value in row] for row in rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(names))]
    is_number = [all(isinstance(row[at], (int, float, type(None))) for row in rows) for at in range(len(names))]
    for line in lines:
        columns = zip(line, widths, is_number)
        print("  ".join(text.rjust(width) if number else text.ljust(width) for text, width, number in columns).rstrip())


def main():
    dataset, sql, engine, master, form, empty, picture, *parameters = sys.argv[1:]
    if "://" not in dataset and not any(Path(dataset).glob("day=*/part=*")):
        sys.exit(f"query: {dataset}: holds no trace: tracebridge dataset add adds some")
    try:
        opened = DuckDb(dataset, *parameters) if engine == "duckdb" else Spark(dataset, *parameters, master)
    except ModuleNotFoundError as error:
        setup = {"duckdb": "scripts/setup", "spark": "scripts/setup --spark"}[engine]
        sys.exit(f"query: {sys.executable} has no package {error.name}: run {setup}")
    try:
        text = query_text(sql)
        check_sides(text, opened, *parameters)
        names, rows = tested(text, *opened.run(text))
    except (opened.errors, OSError) as error:
        sys.exit(f"query: {error}")
    rows = [[plain(value) for value in row] for row in rows]
    if picture:
        title = text.splitlines()[0].removeprefix("-- ").replace("--key (default: build)", parameters[0])
        try:
            Path(picture).write_text(plot.svg(title, names, rows))
        except (plot.NoLines, OSError) as error:
            sys.exit(f"query: {error}")
    if form == "csv":
        writer = csv.writer(sys.stdout)
        writer.writerow(csv_cell(name) for name in names)
        writer.writerows([csv_cell(value) for value in row] for row in rows)
    else:
        print_table(names, rows)
    if not rows:
        print("query: there are no rows", file=sys.stderr)
        if empty == "fails":
            sys.exit(1)


if __name__ == "__main__":
    main()
