"use strict";
// The number at the start of a cell's text, or in brackets there; other text as it is.
function keyOf(row, column) {
    const text = row.cells[column].textContent.trim();
    const number = parseFloat(text.replace(/^\[/, ""));
    return isNaN(number) ? (text == "" || text == "NaN" ? -Infinity : text) : number;
}
function compare(a, b) {
    if (typeof a == "number" && typeof b == "number") return a - b;
    return String(a).localeCompare(String(b));
}
// Sorts the rows of a table; in a table of groups the groups, and the rows in each.
function sort(table, column, direction) {
    const order = (x, y) => direction * compare(x.key, y.key);
    const sorted = (rows, first) =>
        rows.map(row => ({row, key: keyOf(first(row), column)})).sort(order).map(entry => entry.row);
    const bodies = Array.from(table.tBodies);
    for (const body of bodies) {
        const rows = Array.from(body.rows).filter(row => !row.classList.contains("group"));
        body.append(...sorted(rows, row => row));
    }
    if (table.classList.contains("groups"))
        table.append(...sorted(bodies, body => body.rows[0]));
}
for (const head of document.querySelectorAll("table.sortable th")) {
    head.classList.add("sorts");
    head.tabIndex = 0;
    const by = () => {
        const table = head.closest("table");
        const was = head.getAttribute("aria-sort");
        const isText = head.classList.contains("name");
        const down = was ? was == "ascending" : !isText;
        for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        sort(table, head.cellIndex, down ? -1 : 1);
    };
    head.addEventListener("click", by);
    head.addEventListener("keydown", event => { if (event.key == "Enter") by(); });
}
for (const cell of document.querySelectorAll("td.bar")) {
    const share = parseFloat(cell.textContent);
    if (share > 0) cell.style.setProperty("--share", Math.min(share, 100) + "%");
}
function fold(body, folded) {
    body.classList.toggle("folded", folded);
    body.rows[0].setAttribute("aria-expanded", String(!folded));
}
for (const table of document.querySelectorAll("table.groups")) {
    for (const body of table.tBodies) {
        const head = body.rows[0];
        head.tabIndex = 0;
        fold(body, true);
        const toggle = event => {
            if (!event.target.closest("a")) fold(body, !body.classList.contains("folded"));
        };
        head.addEventListener("click", toggle);
        head.addEventListener("keydown", event => { if (event.key == "Enter") toggle(event); });
    }
    for (const [text, folded] of [["Unfold all", false], ["Fold all", true]]) {
        const button = document.createElement("button");
        button.textContent = text;
        button.addEventListener("click", () => { for (const body of table.tBodies) fold(body, folded); });
        table.before(button, " ");
    }
}
// A link to a folded group unfolds it.
function unfoldTarget() {
    const target = document.getElementById(location.hash.substring(1));
    if (target && target.closest("table.groups")) {
        fold(target, false);
        target.scrollIntoView();
    }
}
addEventListener("hashchange", unfoldTarget);
unfoldTarget();
