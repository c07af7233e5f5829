// Search and order of a report's lists. Without this file everything can still be read.
"use strict";

(function () {
  const list = document.getElementById("list");
  const rows = list ? Array.from(list.tBodies[0].rows) : [];
  const search = document.getElementById("search");
  const format = document.getElementById("format");
  const state = new URLSearchParams(location.hash.startsWith("#?") ? location.hash.slice(2) : "");

  function remember(name, value) {
    if (value) state.set(name, value); else state.delete(name);
    const text = state.toString();
    history.replaceState(null, "", text ? "#?" + text : location.pathname + location.search);
  }

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const name = row.cells[0].textContent.toLowerCase();
      const fits = words.every(word => name.includes(word)) && (!format.value || row.cells[1].textContent === format.value);
      row.hidden = !fits;
      shown += fits;
    }
    const count = new Intl.NumberFormat("en").format;
    document.getElementById("shown").textContent =
      shown === rows.length ? count(shown) + " tables" : count(shown) + " of " + count(rows.length) + " tables";
    document.getElementById("none").hidden = shown > 0;
    remember("q", search.value);
    remember("format", format.value);
  }

  function valueOf(row, place, numeric) {
    const cell = row.cells[place];
    return numeric ? Number(cell.dataset.value || 0) : cell.textContent.toLowerCase();
  }

  function order(table, place, numeric, direction) {
    const body = table.tBodies[0];
    const sorted = Array.from(body.rows).map((row, at) => [valueOf(row, place, numeric), at, row]);
    const sign = direction === "descending" ? -1 : 1;
    sorted.sort((a, b) => (a[0] < b[0] ? -sign : a[0] > b[0] ? sign : a[1] - b[1]));
    body.append(...sorted.map(each => each[2]));
    for (const head of table.tHead.rows[0].cells) head.removeAttribute("aria-sort");
    table.tHead.rows[0].cells[place].setAttribute("aria-sort", direction);
  }

  function sortable(table) {
    Array.from(table.tHead.rows[0].cells).forEach(function (head, place) {
      if (!head.dataset.sort) return;
      const numeric = head.dataset.sort !== "text";
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", function () {
        const now = head.getAttribute("aria-sort");
        const direction = now ? (now === "ascending" ? "descending" : "ascending") : numeric ? "descending" : "ascending";
        order(table, place, numeric, direction);
        if (table === list) remember("sort", (direction === "descending" ? "-" : "") + place);
      });
    });
  }

  document.querySelectorAll("table.list").forEach(table => { if (table.querySelector("[data-sort]")) sortable(table); });
  if (list) {
    search.form.hidden = false;
    search.form.addEventListener("submit", event => event.preventDefault());
    search.value = state.get("q") || "";
    format.value = state.get("format") || "";
    if (format.selectedIndex < 0) format.value = "";
    const sorted = /^(-?)(\d+)$/.exec(state.get("sort") || "");
    const head = sorted && list.tHead.rows[0].cells[Number(sorted[2])];
    if (head && head.dataset.sort) {
      order(list, Number(sorted[2]), head.dataset.sort !== "text", sorted[1] ? "descending" : "ascending");
    }
    search.addEventListener("input", filter);
    format.addEventListener("change", filter);
    if (search.value || format.value) filter();
  }
})();
