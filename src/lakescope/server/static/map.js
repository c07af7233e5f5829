// The lake's map: dots and lines with places from the server; zoom, pan and filters here, all of it in the address.
const svg = document.getElementById("map"), tools = document.querySelector("[data-map-tools]"), panel = document.getElementById("map-panel");
const busy = document.getElementById("map-busy"), words = document.querySelector("[data-map-said]"), least = document.getElementById("map-least");
const SVG = "http://www.w3.org/2000/svg", WIDTH = 1000, HEIGHT = 640, EDGE = 60;
const make = (name, attributes, ...inside) => {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...inside);
  return node;
};
const element = (name, properties, ...inside) => { const node = Object.assign(document.createElement(name), properties); node.append(...inside); return node; };
const address = (table) => `/table?name=${encodeURIComponent(table)}`;

let graph, nodes, chosen = null, view = { x: 0, y: 0, k: 1 };
const layer = make("g", {});
svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
svg.append(layer);

async function load() {
  for (;;) {
    const response = await fetch("/api/v1/map?minimum=0.8&budget=1");
    const answer = await response.json();
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
}

function failed(text) { busy.replaceChildren(element("p", { textContent: text })); }
busy.querySelector("[data-map-cancel]").addEventListener("click", async () => {
  if (busy.dataset.job) await fetch(`/api/v1/jobs/${busy.dataset.job}`, { method: "DELETE" });
});

function draw() {
  const hues = [...new Set(graph.nodes.map((node) => node.folder.split("/")[0]))].sort();
  const at = (node) => [EDGE + node.x * (WIDTH - 2 * EDGE), EDGE + node.y * (HEIGHT - 2 * EDGE)];
  nodes = new Map(graph.nodes.map((node) => [node.table, { ...node, at: at(node) }]));
  for (const edge of graph.edges) {
    const [a, b] = [nodes.get(edge.child).at, nodes.get(edge.parent).at];
    const bend = edge.kind === "joinable" ? 0.08 : 0.04;
    const middle = [(a[0] + b[0]) / 2 + (b[1] - a[1]) * bend, (a[1] + b[1]) / 2 - (b[0] - a[0]) * bend];
    edge.line = make("path", { d: `M${a}Q${middle} ${b}`, class: `edge ${edge.kind === "joinable" ? "joinable" : "foreign"}`, "stroke-width": edge.kind === "joinable" ? 0.6 + edge.inclusion : 1.2 + edge.strength });
    layer.append(edge.line);
  }
  const ranked = [...nodes.values()].sort((a, b) => a.links - b.links);
  const major = named(ranked.slice().reverse());
  for (const node of ranked) {
    const radius = Math.min(15, 3.5 + 1.5 * Math.log10(1 + node.rows));
    node.mark = make("g", { class: `node ${major.has(node) ? "major " : ""}hue${hues.indexOf(node.folder.split("/")[0]) % 8}`, transform: `translate(${node.at})` },
      make("title", {}, `${node.table}: ${node.rows.toLocaleString("en")} rows, ${node.links} links`),
      make("circle", { r: radius }),
      make("text", { y: radius + 11, "text-anchor": "middle" }, node.table.split("/").pop().slice(0, 28)));
    node.mark.addEventListener("click", () => choose(chosen === node.table ? null : node.table));
    layer.append(node.mark);
  }
}

// Tables whose names are shown from afar: those with the most links, as long as no name covers another.
function named(ranked) {
  const boxes = [], found = new Set();
  for (const node of ranked) {
    const wide = 3 + 2.9 * node.table.split("/").pop().slice(0, 28).length, [x, y] = node.at;
    if (found.size < 40 && !boxes.some((box) => Math.abs(box.x - x) < box.wide + wide && Math.abs(box.y - y) < 15)) {
      boxes.push({ x, y, wide });
      found.add(node);
    }
  }
  return found;
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
    if (mine) near.add(edge.child).add(edge.parent);
  }
  let shown = 0;
  for (const node of nodes.values()) {
    const there = linked.has(node.table);
    shown += there;
    node.mark.classList.toggle("gone", !there);
    node.mark.classList.toggle("chosen", node.table === chosen);
    node.mark.classList.toggle("far", Boolean(chosen) && !near.has(node.table));
  }
  layer.classList.toggle("crowded", shown > 60 && view.k < 1.8 && !chosen);
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
  layer.classList.toggle("crowded", [...(nodes?.values() ?? [])].length > 60 && view.k < 1.8 && !chosen);
}

function zoom(factor, x = WIDTH / 2, y = HEIGHT / 2) {
  const k = Math.min(8, Math.max(0.6, view.k * factor)), by = k / view.k;
  view = { k, x: x - (x - view.x) * by, y: y - (y - view.y) * by };
  place();
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
tools.addEventListener("submit", (event) => event.preventDefault());
tools.addEventListener("click", (event) => {
  const wanted = event.target.closest("[data-zoom]")?.dataset.zoom;
  if (wanted === "in") zoom(1.3);
  if (wanted === "out") zoom(1 / 1.3);
  if (wanted === "all") { view = { x: 0, y: 0, k: 1 }; place(); }
});
document.addEventListener("part", () => { if (graph) filter(); }); // the list of links came after the map
addEventListener("popstate", () => { fromAddress(); filter(); });
load();
