// The lake's map: dots and lines with places from the server; names where there is room, zoom, pan and filters here, all of it in the address.
const svg = document.getElementById("map"), tools = document.querySelector("[data-map-tools]"), panel = document.getElementById("map-panel");
const busy = document.getElementById("map-busy"), words = document.querySelector("[data-map-said]"), least = document.getElementById("map-least");
const folders = document.querySelector("[data-map-folders]");
const SVG = "http://www.w3.org/2000/svg", HUES = 7, LETTERS = 24;
// Pixels that a letter and a line of a name take.
const LETTER = 6.3, LINE = 13, SIZE = 11;
const make = (name, attributes, ...inside) => {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...inside);
  return node;
};
const element = (name, properties, ...inside) => { const node = Object.assign(document.createElement(name), properties); node.append(...inside); return node; };
const address = (table) => `/table?name=${encodeURIComponent(table)}`;

let graph, nodes, ranked, width = 1200, height = 800, chosen = null, view = { x: 0, y: 0, k: 1 };
const layer = make("g", {}), lines = make("g", {}), dots = make("g", {}), names = make("g", { class: "names" });
layer.append(lines, dots, names);
svg.append(layer);

let left = false; // who cancels waits no more, though others may
async function load() {
  left = false;
  for (;;) {
    const response = await fetch("/api/v1/map?minimum=0.8&wait=1");
    const answer = await response.json();
    if (left) return;
    if (response.status === 202) {
      busy.dataset.job = answer.data.id;
      busy.querySelector("[data-doing]").textContent = `${answer.data.doing} … ${Math.round(answer.data.seconds)} s`;
      if (answer.data.share !== null) busy.querySelector("progress").value = answer.data.share;
      continue;
    }
    if (!response.ok) { failed([answer.error.message, answer.error.hint].filter(Boolean).join(": ")); return; }
    graph = answer.data;
    break;
  }
  busy.remove();
  draw();
  fromAddress();
  filter();
  bend();
}

const asking = [...busy.childNodes];
function failed(text) {
  const again = element("button", { type: "button", className: "button small", textContent: "Ask again" });
  again.addEventListener("click", () => { busy.replaceChildren(...asking); load(); });
  busy.replaceChildren(element("p", { textContent: text }), again);
}
busy.querySelector("[data-map-cancel]").addEventListener("click", async () => {
  left = true;
  failed("Cancelled.");
  if (busy.dataset.job) await fetch(`/api/v1/jobs/${busy.dataset.job}`, { method: "DELETE" });
});

function draw() {
  [width, height] = graph.size;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const hue = colours();
  nodes = new Map(graph.nodes.map((node) => [node.table, { ...node, short: cut(node.name) }]));
  ranked = [...nodes.values()].sort((a, b) => b.links - a.links || (a.table < b.table ? -1 : 1));
  for (const edge of graph.edges) {
    edge.line = make("path", { class: `edge ${edge.kind === "joinable" ? "joinable" : "foreign"}`, "stroke-width": edge.kind === "joinable" ? 0.6 + edge.inclusion : 1.2 + edge.strength });
    curve(edge, 0.05);
    lines.append(edge.line);
  }
  for (const node of ranked.slice().reverse()) {
    node.mark = make("g", { class: `node hue${hue(node)}`, transform: `translate(${node.x} ${node.y})` },
      make("title", {}, `${node.table}: ${node.rows.toLocaleString("en")} rows, ${node.links} links`),
      make("circle", { r: node.radius }));
    node.name = make("text", { "text-anchor": "middle" }, node.short);
    node.mark.addEventListener("click", () => choose(chosen === node.table ? null : node.table));
    for (const [event, on] of [["pointerenter", true], ["pointerleave", false]]) node.mark.addEventListener(event, () => node.name.classList.toggle("over", on));
    dots.append(node.mark);
    names.append(node.name);
  }
  // How wide names are is up to the font; an estimate where nothing is drawn yet.
  names.setAttribute("font-size", SIZE);
  for (const node of ranked) node.wide = node.name.getComputedTextLength() || LETTER * node.short.length;
}

const cut = (text) => (text.length <= LETTERS ? text : `${text.slice(0, LETTERS - 1)}…`);
const folderOf = (node) => node.folder.split("/")[0];

// The folders with the most tables have a colour each, all others one; the legend says which.
function colours() {
  const counts = new Map();
  for (const node of graph.nodes) counts.set(folderOf(node), (counts.get(folderOf(node)) ?? 0) + 1);
  const most = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([folder]) => folder);
  const own = most.slice(0, most.length === HUES + 1 ? HUES + 1 : HUES);
  const items = own.map((folder, at) => [folder || "no folder", at]);
  if (most.length > own.length) items.push([`${most.length - own.length} other folders`, HUES]);
  folders.replaceChildren(...items.map(([label, at]) => element("li", {}, element("span", { className: `dot hue${at}` }), label)));
  return (node) => { const at = own.indexOf(folderOf(node)); return at < 0 ? HUES : at; };
}

function curve(edge, bend) {
  const a = nodes.get(edge.child), b = nodes.get(edge.parent);
  edge.middle = [(a.x + b.x) / 2 + (b.y - a.y) * bend, (a.y + b.y) / 2 - (b.x - a.x) * bend];
  edge.line.setAttribute("d", `M${a.x} ${a.y}Q${edge.middle} ${b.x} ${b.y}`);
}

// Each line takes the bend on which it runs through the fewest dots and names of others.
function bend() {
  const boxes = ranked.flatMap((node) => [boxOf(node), ...(node.box ? [{ ...node.box, node }] : [])]);
  for (const edge of graph.edges) {
    const a = nodes.get(edge.child), b = nodes.get(edge.parent);
    const others = boxes.filter((box) => box.node !== a && box.node !== b);
    let best = null;
    for (const way of [0.05, -0.05, 0.15, -0.15, 0.28, -0.28]) {
      const m = [(a.x + b.x) / 2 + (b.y - a.y) * way, (a.y + b.y) / 2 - (b.x - a.x) * way];
      let met = 10 * Math.abs(way) / 0.28 / 8;
      for (let t = 0.06; t < 0.95; t += 0.04) {
        const x = (1 - t) ** 2 * a.x + 2 * t * (1 - t) * m[0] + t * t * b.x, y = (1 - t) ** 2 * a.y + 2 * t * (1 - t) * m[1] + t * t * b.y;
        for (const box of others) if (x > box.left && x < box.right && y > box.top && y < box.bottom) met += 1;
      }
      if (best === null || met < best.met) best = { met, way };
    }
    curve(edge, best.way);
  }
}

// --- names ------------------------------------------------------------------------------------------------------------

const boxOf = (node) => ({ node, left: node.x - node.radius, right: node.x + node.radius, top: node.y - node.radius, bottom: node.y + node.radius });
const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

// Names keep their size on the screen. Those with the most links come first, where they cover no dot and no other name; the others are seen when pointed at, chosen, or nearer.
function label() {
  if (!nodes) return;
  const unit = width / (svg.clientWidth || width) / view.k;
  names.setAttribute("font-size", SIZE * unit);
  names.setAttribute("stroke-width", 3 * unit);
  const shown = ranked.filter((node) => !node.gone);
  const urgent = (node) => (node.table === chosen ? 2 : node.near || node.meant ? 1 : 0);
  const taken = shown.map(boxOf);
  for (const node of shown.slice().sort((a, b) => urgent(b) - urgent(a))) {
    const wide = unit * (node.wide + 2) / 2, line = LINE * unit;
    const places = [[0, node.radius + line * 0.5], [0, -node.radius - line * 0.5], [node.radius + wide + 3 * unit, 0], [-node.radius - wide - 3 * unit, 0]];
    node.box = null;
    for (const [dx, dy] of places) {
      const box = { left: node.x + dx - wide, right: node.x + dx + wide, top: node.y + dy - line / 2, bottom: node.y + dy + line / 2 };
      if (taken.some((other) => other.node !== node && meet(box, other))) continue;
      if (view.k === 1 && (box.left < 0 || box.right > width || box.top < 0 || box.bottom > height)) continue;
      node.box = box;
      taken.push(box);
      break;
    }
    const at = node.box ?? { left: node.x - wide, right: node.x + wide, top: node.y + node.radius, bottom: node.y + node.radius + line };
    node.name.setAttribute("x", (at.left + at.right) / 2);
    node.name.setAttribute("y", (at.top + at.bottom) / 2 + SIZE * unit * 0.36);
    node.name.classList.toggle("quiet", !node.box);
  }
}

function filter() {
  const name = tools.elements.name.value.trim().toLowerCase(), bound = Number(tools.elements.least.value) / 100;
  least.textContent = `${tools.elements.least.value}%`;
  const kinds = { "foreign key": tools.elements.foreign.checked, joinable: tools.elements.joinable.checked };
  const linked = new Set(), near = new Set([chosen]);
  for (const edge of graph.edges) {
    const fits = kinds[edge.kind] && edge.inclusion >= bound - 1e-9 && (!name || edge.child.toLowerCase().includes(name) || edge.parent.toLowerCase().includes(name));
    edge.line.classList.toggle("gone", !fits);
    edge.shown = fits;
    if (fits) { linked.add(edge.child).add(edge.parent); }
    const mine = chosen && fits && (edge.child === chosen || edge.parent === chosen);
    edge.line.classList.toggle("mine", Boolean(mine));
    edge.line.classList.toggle("far", Boolean(chosen) && !mine);
    if (mine) near.add(edge.child).add(edge.parent);
  }
  let shown = 0;
  for (const node of nodes.values()) {
    const there = linked.has(node.table);
    shown += there;
    node.gone = !there;
    node.near = Boolean(chosen) && near.has(node.table);
    node.meant = Boolean(name) && node.table.toLowerCase().includes(name);
    node.mark.classList.toggle("chosen", node.table === chosen);
    for (const drawn of [node.mark, node.name]) {
      drawn.classList.toggle("gone", !there);
      drawn.classList.toggle("far", Boolean(chosen) && !node.near);
    }
  }
  label();
  const hidden = graph.left_out ? `, ${graph.left_out} more are left out: those with the fewest links` : "";
  words.textContent = `${shown} of ${nodes.size} linked tables shown, ${graph.alone} have no link${hidden}.`;
  document.querySelectorAll("tr[data-edge]").forEach((row) => {
    row.hidden = !(kinds[row.dataset.kind] && Number(row.dataset.strength) >= bound - 1e-9 && (!name || row.dataset.edge.toLowerCase().includes(name)));
  });
  tellChosen();
  toAddress();
}

function tellChosen() {
  panel.hidden = !chosen;
  if (!chosen) return;
  const node = nodes.get(chosen), list = element("ul", {});
  for (const edge of graph.edges.filter((each) => each.shown && (each.child === chosen || each.parent === chosen))) {
    const other = edge.child === chosen ? edge.parent : edge.child;
    const word = edge.kind === "joinable" ? "shares values with" : edge.child === chosen ? "refers to" : "is referred to by";
    const jump = element("button", { type: "button", className: "link", textContent: other });
    jump.addEventListener("click", () => choose(other));
    list.append(element("li", {}, `${word} `, jump, element("span", { className: "muted small", textContent: ` ${edge.child_columns.join(", ")} in ${edge.parent_columns.join(", ")}, ${Math.round(100 * edge.inclusion)}%` })));
  }
  const close = element("button", { type: "button", className: "button small", textContent: "Close" });
  close.addEventListener("click", () => choose(null));
  panel.replaceChildren(element("h2", {}, element("a", { href: address(chosen), textContent: chosen })), element("p", { className: "muted small", textContent: `${node.rows.toLocaleString("en")} rows, ${node.columns} columns` }), list, close);
}

function choose(table) { chosen = table && nodes.has(table) ? table : null; filter(); }

// --- the address ------------------------------------------------------------------------------------------------------

function toAddress() {
  const wanted = new URLSearchParams();
  if (tools.elements.name.value) wanted.set("name", tools.elements.name.value);
  if (tools.elements.least.value !== "80") wanted.set("least", tools.elements.least.value);
  if (!tools.elements.foreign.checked) wanted.set("foreign", "no");
  if (!tools.elements.joinable.checked) wanted.set("joinable", "no");
  if (chosen) wanted.set("table", chosen);
  const text = wanted.toString();
  history.replaceState(null, "", text ? `?${text}` : location.pathname);
}

function fromAddress() {
  const wanted = new URLSearchParams(location.search);
  tools.elements.name.value = wanted.get("name") ?? "";
  tools.elements.least.value = wanted.get("least") ?? "80";
  tools.elements.foreign.checked = wanted.get("foreign") !== "no";
  tools.elements.joinable.checked = wanted.get("joinable") !== "no";
  if (nodes.has(wanted.get("table"))) chosen = wanted.get("table");
}

// --- zoom and pan -----------------------------------------------------------------------------------------------------

function place() {
  layer.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.k})`);
}

// Where names have room changes with the scale: looked at once a frame.
let waiting = 0;
const relabel = () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(label); };
addEventListener("resize", relabel);

function zoom(factor, x = width / 2, y = height / 2) {
  const k = Math.min(8, Math.max(0.6, view.k * factor)), by = k / view.k;
  view = { k, x: x - (x - view.x) * by, y: y - (y - view.y) * by };
  place();
  relabel();
}

// All that is shown, as large as it can be.
function fit() {
  const shown = (ranked ?? []).filter((node) => !node.gone);
  if (!shown.length || shown.length === nodes.size) view = { x: 0, y: 0, k: 1 };
  else {
    const edges = [Math.min(...shown.map((node) => node.x)) - 90, Math.min(...shown.map((node) => node.y)) - 50, Math.max(...shown.map((node) => node.x)) + 90, Math.max(...shown.map((node) => node.y)) + 50];
    const k = Math.min(4, width / (edges[2] - edges[0]), height / (edges[3] - edges[1]));
    view = { k, x: width / 2 - k * (edges[0] + edges[2]) / 2, y: height / 2 - k * (edges[1] + edges[3]) / 2 };
  }
  place();
  relabel();
}

const point = (event) => {
  const matrix = svg.getScreenCTM().inverse();
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix);
  return [at.x, at.y];
};
svg.addEventListener("wheel", (event) => { event.preventDefault(); zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15, ...point(event)); }, { passive: false });
let held = null;
svg.addEventListener("pointerdown", (event) => { held = point(event); });
addEventListener("pointermove", (event) => {
  if (!held || !(event.buttons & 1)) return;
  const now = point(event);
  view.x += now[0] - held[0]; view.y += now[1] - held[1];
  held = now;
  place();
});
addEventListener("pointerup", () => { held = null; });
svg.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
  if (step) { event.preventDefault(); view.x += step[0]; view.y += step[1]; place(); }
  if (event.key === "+" || event.key === "=") zoom(1.25);
  if (event.key === "-") zoom(0.8);
  if (event.key === "Escape") choose(null);
});
tools.addEventListener("input", filter);
// Without a mouse: Enter chooses the table that is meant, the one with the most links first.
tools.addEventListener("submit", (event) => {
  event.preventDefault();
  const meant = (ranked ?? []).find((node) => node.meant && !node.gone);
  if (meant) choose(meant.table);
});
tools.addEventListener("click", (event) => {
  const wanted = event.target.closest("[data-zoom]")?.dataset.zoom;
  if (wanted === "in") zoom(1.3);
  if (wanted === "out") zoom(1 / 1.3);
  if (wanted === "all") fit();
});
document.addEventListener("part", () => { if (graph) filter(); }); // the list of links came after the map
addEventListener("popstate", () => { fromAddress(); filter(); });
load();
