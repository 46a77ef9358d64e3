#!/usr/bin/env python3
"""site.py: the two steps of scripts/site beside mdbook.

site.py stage WORK [--repository ADDRESS]   puts book.toml and the pages that docs/SUMMARY.md names into WORK, with the
                                            layout of the repository, and WORK/demo.html and WORK/why.txt into the tour
site.py check SITE                          follows every link inside of the built site
"""

import argparse
import html.parser
import posixpath
import re
import shutil
import subprocess
import sys
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOUR = "docs/tour.md"
# Files of docs/ that pages show or name: they lie beside the pages in the site, too.
ASSETS = (".png", ".svg", ".json")
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\](?:\([^()]*\))?)*)\]\(([^()\s]+)((?:\s+\"[^\"]*\")?)\)")


def blanked(text):
    """The text with code in place of which stand as many letters, so that a search finds no links in it."""
    lines, fence = [], None
    for line in text.split("\n"):
        mark = re.match(r" *(```+|~~~+)", line)
        if fence is None and mark:
            fence = mark.group(1)
            lines.append("x" * len(line))
        elif fence is not None:
            if line.strip().startswith(fence):
                fence = None
            lines.append("x" * len(line))
        else:
            lines.append(line)
    return re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", lambda m: "x" * len(m.group()), "\n".join(lines), flags=re.S)


def resolved(page, path):
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path))


def in_site(page):
    """The place of a page in the site: a README is the first page of its directory."""
    return re.sub(r"(^|/)README\.md$", r"\1index.md", page)


def pages_of_summary():
    """The pages that docs/SUMMARY.md names, as paths in the repository, and the summary with these paths."""
    pages = []

    def of_repository(match):
        page = resolved("docs/SUMMARY.md", match.group(2))
        pages.append(page)
        return f"[{match.group(1)}]({in_site(page)})"

    summary = LINK.sub(of_repository, (ROOT / "docs/SUMMARY.md").read_text())
    return pages, summary


def with_links(page, text, pages, repository):
    """The text of a page with links that lead somewhere in the site, or to the repository."""
    pieces, end = [], 0
    for match in LINK.finditer(blanked(text)):
        target = match.group(2)
        path, _, anchor = target.partition("#")
        if not path or "://" in target or target.startswith("mailto:"):
            continue
        file = resolved(page, path)
        words = text[match.start(1) : match.end(1)]
        readme = f"{file}/README.md"
        anchor = f"#{anchor}" if anchor else ""
        if file in pages and file != in_site(file):
            link = f"[{words}]({in_site(path)}{anchor})"
        elif file in pages or (file.startswith("docs/") and file.endswith(ASSETS)):
            continue
        elif readme in pages:
            link = f"[{words}]({path.rstrip('/')}/index.md{anchor})"
        elif repository:
            link = f"[{words}]({repository}/{file})"
        else:
            link = words
        # A picture would begin with an exclamation mark; none lies outside of docs/.
        pieces += [text[end : match.start()], link]
        end = match.end()
    return "".join(pieces) + text[end:]


def with_report(text, work):
    """The tour with the report and the causes in place of what stands for them in the repository."""
    why = (work / "why.txt").read_text().rstrip("\n")
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", why)), default=0))
    places = {
        "report": '<p><a href="demo.html">The page alone</a></p>\n'
        '<iframe class="report" title="The report of the demo" src="demo.html#panel=timeline"></iframe>\n',
        "why": f"{fence}text\n$ tracebridge why demo.dat demo.trace\n{why}\n{fence}\n",
    }
    for name, put in places.items():
        text, count = re.subn(
            rf"<!-- site: {name} -->\n.*?<!-- site: end -->\n", lambda _: put, text, flags=re.S
        )
        if count != 1:
            sys.exit(f"{TOUR}: it has {count} places for {name}, and is to have one")
    return text


def stage(work, repository):
    pages, summary = pages_of_summary()
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE
    ).stdout.split("\0")
    missed = [p for p in tracked if p.startswith("docs/") and p.endswith(".md") and p not in pages]
    missed = [page for page in missed if page != "docs/SUMMARY.md"]
    if missed:
        sys.exit(f"docs/SUMMARY.md lacks {', '.join(missed)}")
    src = work / "src"
    for page in pages:
        text = (ROOT / page).read_text()
        if text.startswith("---\n"):
            # The head of a skill is for programs.
            text = text.split("\n---\n", 1)[1]
        text = with_links(page, text, set(pages), repository)
        if page == TOUR:
            text = with_report(text, work)
        place = src / in_site(page)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    for asset in (p for p in tracked if p.startswith("docs/") and p.endswith(ASSETS)):
        (src / asset).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / asset, src / asset)
    shutil.copy(work / "demo.html", src / "docs/demo.html")
    (src / "SUMMARY.md").write_text(summary)
    for name in ("book.toml", "site.css"):
        shutil.copy(ROOT / "docs" / name, work / name)


class Page(html.parser.HTMLParser):
    """The links of a page, what it loads, and the places in it that links can lead to."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if attrs.get("id"):
            self.anchors.add(attrs["id"])
        if tag == "a" and attrs.get("name"):
            self.anchors.add(attrs["name"])
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        if tag in ("img", "script", "iframe", "source", "video", "embed") and attrs.get("src"):
            self.loads.append(attrs["src"])
        if tag == "link" and attrs.get("href") and attrs.get("rel") != "canonical":
            self.loads.append(attrs["href"])


def check(site):
    texts = {path: path.read_text() for path in site.rglob("*.html")}
    # The report is a page of its own: its text is the work of its script, and it loads nothing.
    report = site / "docs/demo.html"
    if report not in texts:
        sys.exit(f"{report} is missing")
    pages = {path: Page(text) for path, text in texts.items() if path != report}
    faults, followed = [], 0
    for path, page in pages.items():
        for target in page.links + page.loads:
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or parts.netloc:
                if target in page.loads:
                    faults.append(f"{path.relative_to(site)}: loads {target}")
                continue
            followed += 1
            file = path if not parts.path else (path.parent / urllib.parse.unquote(parts.path)).resolve()
            if file.is_dir():
                file /= "index.html"
            if not file.is_file() or site not in file.parents:
                faults.append(f"{path.relative_to(site)}: {target}: no such file")
            elif parts.fragment and file in pages and urllib.parse.unquote(parts.fragment) not in pages[file].anchors:
                faults.append(f"{path.relative_to(site)}: {target}: no such heading")
    for fault in sorted(set(faults)):
        print(fault, file=sys.stderr)
    print(f"{len(pages)} pages, {followed} links inside of the site, {len(set(faults))} of them wrong", file=sys.stderr)
    if faults or not followed:
        sys.exit(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    step = steps.add_parser("stage")
    step.add_argument("work", type=Path)
    step.add_argument("--repository", type=lambda address: address.rstrip("/"))
    step = steps.add_parser("check")
    step.add_argument("site", type=Path)
    args = parser.parse_args()
    if args.step == "stage":
        stage(args.work, args.repository)
    else:
        check(args.site.resolve())


if __name__ == "__main__":
    main()
