"""Draws the rows of a query as lines: a picture in SVG, without a library."""

from datetime import date
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 900, 420
# The room around the lines, px: on the right stand the names of the lines.
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 50, 45
# Colours that people with any kind of colour vision tell apart (Okabe and Ito, 2008).
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#b2a000"]
MAX_LINES = 24


class NoLines(ValueError):
    """The rows are no lines."""


def places(values):
    """The place of each value on the x axis: days as far apart as they are, other values side by side."""
    values = sorted(set(values))
    try:
        days = {value: date.fromisoformat(value).toordinal() for value in values}
        return {value: day - min(days.values()) for value, day in days.items()}
    except ValueError:
        return {value: place for place, value in enumerate(values)}


def steps(most):
    """Four to nine round numbers from 0 to `most` or a little more."""
    step = 1e-9
    while most / step > 8:
        step *= 2.5 if f"{step:e}".startswith("2") else 2
    return [step * number for number in range(int(most / step + 0.999999) + 1)]


def line_rows(names, rows):
    """For each line its points: the columns are the line's name, the place on the x axis, and the number."""
    lines = {}
    for row in rows:
        if len(row) < 3 or not isinstance(row[2], (int, float, type(None))):
            break
        if row[2] is not None:
            lines.setdefault(str(row[0]), []).append((str(row[1]), float(row[2])))
    else:
        if 0 < len(lines) <= MAX_LINES and max(number for points in lines.values() for _, number in points) > 0:
            return lines
    form = f"a line's name, a place on the x axis, a number above 0, and at most {MAX_LINES} lines"
    raise NoLines(f"--plot draws rows of this form: {form}; the columns are {', '.join(names)}")


def svg(title, names, rows):
    """A line for each value of the first column: the third column over the second.

    Raises NoLines where the rows have another form."""
    lines = line_rows(names, rows)
    x_places = places([place for points in lines.values() for place, _ in points])
    grid = steps(max(number for points in lines.values() for _, number in points))
    x_end, y_end = max(x_places.values()) or 1, grid[-1]
    x = lambda place: LEFT + (WIDTH - LEFT - RIGHT) * x_places[place] / x_end
    y = lambda number: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * number / y_end
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{escape(title)}</text>',
        f'<text x="{LEFT}" y="40" fill="#555">{escape(names[2])}</text>',
    ]
    for number in grid:
        height = f"{y(number):.1f}"
        out.append(f'<path d="M{LEFT} {height}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{height}" dy="4" text-anchor="end">{number:g}</text>')
    # As many names of places as have room.
    every = -(-len(x_places) // 8)
    for place in list(x_places)[::every]:
        out.append(f'<text x="{x(place):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{escape(place)}</text>')
    # A name stands where its line ends, and below the name before it.
    ends = sorted(lines, key=lambda name: y(lines[name][-1][1]))
    below = TOP
    for name in ends:
        points = sorted(lines[name], key=lambda point: x_places[point[0]])
        colour = COLOURS[list(lines).index(name) % len(COLOURS)]
        path = " ".join(f"{x(place):.1f},{y(number):.1f}" for place, number in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x(place):.1f}" cy="{y(number):.1f}" r="3" fill="{colour}"/>' for place, number in points]
        below = max(below, y(points[-1][1]) + 4)
        out.append(f'<text x="{WIDTH - RIGHT + 12}" y="{below:.1f}" fill="{colour}">{escape(name)}</text>')
        below += 15
    return "\n".join([*out, "</svg>\n"])
