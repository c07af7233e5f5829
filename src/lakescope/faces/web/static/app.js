// Parts that are fetched, progress and cancelling, files that are dropped, code that is copied, charts.
const said = document.getElementById("said");
const say = (text) => { if (said) said.textContent = text; };
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// --- parts ------------------------------------------------------------------------------------------------------------

const fetched = new Map();
const fetchPart = (address) => {
  if (!fetched.has(address)) fetched.set(address, getPart(address).finally(() => setTimeout(() => fetched.delete(address), 100)));
  return fetched.get(address);
};

async function getPart(address) {
  const response = await fetch(address, { headers: { "X-Part": "1" } });
  return { status: response.status, text: await response.text() };
}

async function loadPart(place) {
  const address = place.dataset.part;
  place.setAttribute("aria-busy", "true");
  try {
    let { status, text } = await fetchPart(address);
    while (status === 202 && place.isConnected) {
      if (!place.dataset.pick) show(place, text);
      const job = parse(text).querySelector("[data-job]");
      if (!(await follow(job.dataset.job, place))) break;
      ({ status, text } = await fetchPart(address));
    }
    if (status !== 202) showAnswer(place, text);
  } catch {
    place.innerHTML = "";
    place.append(Object.assign(document.createElement("p"), { className: "failed", textContent: "The server does not answer. Is it still running?" }));
  }
  place.removeAttribute("aria-busy");
}

const parse = (text) => new DOMParser().parseFromString(text, "text/html");

function showAnswer(place, text) {
  if (!place.dataset.pick) return show(place, text);
  const piece = parse(text).querySelector(`[data-piece="${place.dataset.pick}"]`);
  place.replaceChildren(...(piece ? [document.adoptNode(piece)] : []));
}

function show(place, text) {
  place.replaceChildren(...[...parse(text).body.childNodes].map((node) => document.adoptNode(node)));
  ready(place);
  document.dispatchEvent(new Event("part"));
}

// Follow a job until it ends; true if its answer may be asked for.
async function follow(number, place) {
  for (let wait = 300; ; wait = Math.min(1500, wait * 1.2)) {
    await pause(wait);
    const response = await fetch(`/api/v1/jobs/${number}`);
    if (!response.ok) return true;
    const { data } = await response.json();
    if (data.state === "done" || data.state === "failed") return true;
    if (data.state === "cancelled") { cancelled(place); return false; }
    tell(place, data);
  }
}

function tell(place, job) {
  const doing = place.querySelector("[data-doing]"), seconds = place.querySelector("[data-seconds]"), bar = place.querySelector("progress");
  if (doing) doing.textContent = job.state === "queued" ? `waiting, ${job.before} in front` : job.doing;
  if (seconds) seconds.textContent = `${Math.round(job.seconds)} s of at most ${Math.round(job.limit)} s`;
  if (bar && job.share !== null) { bar.max = 1; bar.value = job.share; }
}

function cancelled(place) {
  const text = document.createElement("p");
  const again = Object.assign(document.createElement("button"), { className: "button small", type: "button", textContent: "Ask again" });
  text.append("Cancelled. ", again);
  again.addEventListener("click", () => (place.dataset.part ? loadPart(place) : location.reload()));
  place.replaceChildren(text);
  say("Cancelled.");
}

// A page whose own answer is still worked on is loaded again when it is there.
async function followPage(place) {
  const job = place.querySelector("[data-job]");
  if (job && (await follow(job.dataset.job, place))) location.replace(job.dataset.address);
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-cancel]");
  if (button) {
    event.preventDefault();
    button.disabled = true;
    await fetch(`/api/v1/jobs/${button.closest("[data-job]").dataset.job}`, { method: "DELETE" });
  }
  const start = event.target.closest("[data-start]");
  if (start) {
    event.preventDefault();
    const place = start.closest("[data-part]");
    place.removeAttribute("data-wait");
    loadPart(place);
  }
  const copy = event.target.closest("[data-copy]");
  if (copy) copyCode(copy);
  if (event.target.closest("[data-theme-toggle]")) switchTheme();
});

// --- copying ----------------------------------------------------------------------------------------------------------

async function copyCode(button) {
  const code = button.closest(".snippet").querySelector("pre");
  try {
    await navigator.clipboard.writeText(code.textContent);
    say("Copied.");
    const words = button.firstChild.textContent;
    button.firstChild.textContent = "Copied";
    setTimeout(() => { button.firstChild.textContent = words; }, 1500);
  } catch {
    getSelection().selectAllChildren(code);
    say("Selected: copy it with your keyboard.");
  }
}

// --- files ------------------------------------------------------------------------------------------------------------

function dropping(form) {
  const input = form.querySelector("input[type=file]"), words = form.querySelector("[data-drop-said]");
  form.querySelector("[data-send]").hidden = true;
  const send = async (file) => {
    words.textContent = `Sending ${file.name} …`;
    words.classList.remove("failed");
    form.setAttribute("aria-busy", "true");
    const body = new FormData();
    body.append("file", file);
    try {
      const response = await fetch("/api/v1/uploads", { method: "POST", body });
      const answer = await response.json();
      if (response.ok) { location.assign(`/search?query=${encodeURIComponent(answer.data.query)}`); return; }
      words.textContent = [answer.error.message, answer.error.hint].filter(Boolean).join(": ");
    } catch {
      words.textContent = "The file was not taken: it may be too large, or the server has gone.";
    }
    words.classList.add("failed");
    say(words.textContent);
    form.removeAttribute("aria-busy");
    input.value = "";
  };
  input.addEventListener("change", () => { if (input.files[0]) send(input.files[0]); });
  for (const [name, over] of [["dragover", true], ["dragleave", false], ["drop", false]]) {
    form.addEventListener(name, (event) => { event.preventDefault(); form.classList.toggle("over", over); });
  }
  form.addEventListener("drop", (event) => { if (event.dataTransfer.files[0]) send(event.dataTransfer.files[0]); });
}

// --- charts -----------------------------------------------------------------------------------------------------------

// The point of a plot that is nearest to the pointer is told beside it.
const NEAR = 14; // pixels
const tip = Object.assign(document.createElement("div"), { className: "tip", hidden: true });
document.body.append(tip);

const distance = (event, point) => {
  const box = point.getBoundingClientRect();
  return Math.hypot(event.clientX - box.x - box.width / 2, event.clientY - box.y - box.height / 2);
};

function pointAt(event) {
  const plot = event.target.closest?.(".chart .plot");
  document.querySelector(".pointed")?.classList.remove("pointed");
  const nearest = plot && [...plot.querySelectorAll(".points path")].map((point) => [distance(event, point), point]).reduce((a, b) => (b[0] < a[0] ? b : a));
  tip.hidden = !nearest || nearest[0] > NEAR;
  if (tip.hidden) return;
  nearest[1].classList.add("pointed");
  const { x, y } = plot.closest(".chart").dataset, values = nearest[1].textContent.split("; ");
  tip.textContent = `${x}: ${values[0]}\n${y}: ${values[1]}`;
  tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 4)}px`;
  tip.style.top = `${Math.max(4, event.clientY - tip.offsetHeight - 10)}px`;
}
for (const name of ["pointermove", "pointerdown"]) document.addEventListener(name, pointAt);

function switchTheme() {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("theme", document.documentElement.dataset.theme); } catch { /* a browser that keeps nothing */ }
  dispatchEvent(new Event("theme"));
}

// --- all of it --------------------------------------------------------------------------------------------------------

function ready(root) {
  root.querySelectorAll("[data-part]:not([data-wait])").forEach(loadPart);
  root.querySelectorAll("[data-part-now]").forEach(followPage);
  root.querySelectorAll("a[data-go]").forEach((onwards) => location.replace(onwards.href));
  root.querySelectorAll("[data-drop]").forEach(dropping);
}

// Nothing is sent of a form of finds of which none was chosen.
document.addEventListener("submit", (event) => {
  const form = event.target.closest(".finds-form");
  if (!form) return;
  const none = !form.querySelector("input[name=find]:checked");
  form.querySelector("[data-none-chosen]").hidden = !none;
  if (none) event.preventDefault();
});

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(input|select|textarea)$/i.test(event.target.tagName)) {
    event.preventDefault();
    document.getElementById("q")?.focus();
  }
});
ready(document);
