// Shows what the server answers. Nothing is computed here.

const element = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};
const byId = (id) => document.getElementById(id);
const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

history.replaceState(null, "", location.pathname + location.hash); // the cookie has the token now

// Asking

class Trouble extends Error {}

const GONE = "The server does not answer: is 'theodolite serve' still running?";

// A server that has too much to do says so (503), or closes the connection, and is asked again until it answers or until
// `wanted`, which is told why, says that nobody waits for this answer any more: then there is none.
async function ask(address, options = {}, wanted = null) {
  for (let tries = 1; ; tries += 1) {
    let response;
    try {
      response = await fetch(address, options);
    } catch {
      if (tries > 3 && !wanted) throw new Trouble(GONE);
      await pause(Math.min(2000, 300 * tries));
      if (tries > 3 && !wanted(GONE)) return null;
      continue;
    }
    if (response.status === 304) return null;
    const content = await response.json().catch(() => ({ error: `The server answered with ${response.status}.` }));
    if (response.status === 503) {
      await pause(Math.min(3000, 300 * tries) * (0.75 + 0.5 * Math.random()));
      if (wanted && !wanted(`${content.error} …`)) return null;
      continue;
    }
    if (!response.ok) throw new Trouble(content.error);
    return { content, tag: response.headers.get("etag") };
  }
}

// A place for an answer: one question at a time, then the newest of those asked meanwhile; one that takes its time is
// seen to be at work.
function asker(node, show) {
  let next = null;
  let busy = false;
  const stillWanted = (sentence) => {
    node.dataset.waiting = sentence;
    return !next;
  };
  return async (address, options = {}) => {
    next = [address, options];
    if (busy) return;
    busy = true;
    const waiting = setTimeout(() => node.setAttribute("aria-busy", "true"), 120);
    try {
      while (next) {
        const [asked, how] = next;
        next = null;
        try {
          const found = await ask(asked, how, stillWanted);
          if (!next && found) show(found);
        } catch (error) {
          if (!next) node.replaceChildren(element("p", { className: "trouble", role: "alert", textContent: error.message }));
          if (!(error instanceof Trouble)) throw error;
        }
      }
    } finally {
      clearTimeout(waiting);
      busy = false;
      node.removeAttribute("aria-busy");
      delete node.dataset.waiting;
    }
  };
}

// Showing

function show(node, { says = [], facts = [], drawings = [], tables = [], notes = [] }) {
  const parts = says.map((text) => element("p", { className: "says", textContent: text }));
  if (facts.length) {
    const list = element("dl", { className: "facts" });
    for (const [name, text] of facts) {
      list.append(element("dt", { textContent: name }), element("dd", { textContent: text }));
    }
    parts.push(list);
  }
  if (drawings.length) parts.push(element("div", { className: "drawings" }, ...drawings.map(drawn)));
  parts.push(...tables.map((table) => tabled(table)));
  if (notes.length) {
    parts.push(element("ul", { className: "notes" }, ...notes.map((text) => element("li", { textContent: text }))));
  }
  node.replaceChildren(...parts);
}

function drawn({ svg, src, narrow, alt, legend = [] }) {
  const figure = element("figure", { className: "drawing" });
  if (src) {
    const picture = element("picture");
    if (narrow) picture.append(element("source", { media: "(max-width: 760px)", srcset: narrow }));
    picture.append(element("img", { src, alt }));
    figure.append(picture);
    figure.classList.add("whole");
  } else {
    figure.innerHTML = svg; // drawn by the server, which escapes every text in it
    figure.setAttribute("aria-label", alt);
    if (legend.length) figure.prepend(element("div", { className: "legend" }, ...legend.map(sampled)));
  }
  return figure;
}

function sampled([name, sample]) {
  const entry = element("span", {}, element("span"), name);
  entry.firstChild.innerHTML = `<svg viewBox="0 0 36 14" width="36" height="14" aria-hidden="true">${sample}</svg>`;
  return entry;
}

function tabled({ title, caption, columns, rows }, ids = null, chosen = () => {}) {
  const kind = ({ numeric }) => (numeric ? "numeric" : "");
  const head = columns.map((column) =>
    element("th", { scope: "col", className: kind(column), textContent: column.label, title: column.note }),
  );
  const lines = rows.map((row, place) => {
    const cells = row.map((text, at) => {
      const cell = element("td", { className: kind(columns[at]), textContent: text });
      cell.dataset.name = columns[at].label;
      return cell;
    });
    const line = element("tr", {}, ...cells);
    if (ids) {
      const label = `compare ${row.slice(0, 3).join(" ")}`;
      const box = element("input", { type: "checkbox", value: ids[place], ariaLabel: label });
      box.addEventListener("change", () => chosen(box));
      line.prepend(element("td", { className: "box" }, box));
    }
    return line;
  });
  if (ids) head.unshift(element("th", { scope: "col", textContent: "compare", title: "choose two lines to compare them" }));
  const table = element("table", { className: columns.length > 3 ? "many" : "" }, element("caption", { textContent: title }));
  table.append(element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...lines));
  const parts = [element("div", { className: "framed", tabIndex: 0, role: "region", ariaLabel: title }, table)];
  if (caption) parts.push(element("p", { className: "soft", textContent: caption }));
  return element("div", {}, ...parts);
}

// Parts with sliders

const asked = (form) => new URLSearchParams([...new FormData(form)].filter(([, value]) => typeof value === "string"));

function tuned(slider) {
  const exact = slider.nextElementSibling;
  const logarithmic = "logarithmic" in slider.dataset;
  slider.addEventListener("input", () => {
    const value = Number(slider.value);
    exact.value = logarithmic ? Number((10 ** value).toPrecision(3)).toExponential().replace("e+", "e") : slider.value;
  });
  exact.addEventListener("input", () => {
    const value = logarithmic ? Math.log10(Number(exact.value)) : Number(exact.value);
    if (Number.isFinite(value)) slider.value = value;
  });
}

const parts = {};

for (const form of document.querySelectorAll("form[data-part]")) {
  const part = form.dataset.part;
  const places = [...form.parentElement.querySelectorAll(".answer[data-answer]")].map((node) => {
    const path = node.dataset.answer ? `api/part/${part}/${node.dataset.answer}` : `api/part/${part}`;
    const say = asker(node, ({ content }) => show(node, content));
    let last = null;
    return (text) => {
      if (text !== last || node.querySelector(".trouble")) say(`${path}?${(last = text)}`);
    };
  });
  let later = 0;
  const refresh = () => places.forEach((place) => place(asked(form).toString()));
  form.querySelectorAll("input[type=range]").forEach(tuned);
  form.addEventListener("input", () => {
    clearTimeout(later);
    later = setTimeout(refresh, 60);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  parts[part] = { form, refresh };
}

// Tokens on two sides

{
  const { form, refresh } = parts.partition;
  const hidden = form.elements.partition;
  const sides = () => {
    const [a, b] = hidden.value.split("|").map((side) => side.split(",").filter(Boolean).map(Number));
    return { a, b };
  };
  const put = (places) => {
    const of = (side) => places.flatMap((one, place) => (one === side ? [place] : [])).join(",");
    hidden.value = `${of("A")}|${of("B")}`;
    drawTokens(places);
  };
  const drawTokens = (places) => {
    const held = document.activeElement?.dataset.token;
    byId("tokens").replaceChildren(
      ...places.map((side, place) => {
        const button = element("button", { type: "button", textContent: `${place} ${side}` });
        Object.assign(button.dataset, { side, token: place });
        button.setAttribute("aria-label", `token ${place} on side ${side}`);
        button.addEventListener("click", () => {
          const { a } = sides();
          const now = places.map((_, other) => (a.includes(other) ? "A" : "B"));
          now[place] = side === "A" ? "B" : "A";
          put(now);
          refresh();
        });
        return button;
      }),
    );
    if (held !== undefined) byId("tokens").children[held]?.focus();
  };
  const fit = () => {
    const count = Math.min(8, Math.max(2, Number(form.elements.tokens.value) || 2));
    const { a } = sides();
    if (sides().a.length + sides().b.length === count) return;
    put(Array.from({ length: count }, (_, place) => (a.includes(place) ? "A" : "B")));
  };
  form.addEventListener("input", fit, { capture: true });
  put(Array.from({ length: Number(form.elements.tokens.value) }, (_, place) => (sides().a.includes(place) ? "A" : "B")));
}

// Steps of an iteration

{
  const { form, refresh } = parts.iteration;
  const slider = form.elements.step.previousElementSibling;
  const go = (by) => {
    const step = Math.min(Number(slider.max), Math.max(0, Number(form.elements.step.value) + by));
    form.elements.step.value = step;
    slider.value = step;
    refresh();
    return step;
  };
  let playing = 0;
  const play = (on) => {
    clearInterval(playing);
    byId("play").setAttribute("aria-pressed", String(on));
    byId("play").textContent = on ? "pause" : "play";
    if (on) playing = setInterval(() => go(1) >= Number(slider.max) && play(false), 350);
  };
  byId("step-on").addEventListener("click", () => go(1));
  byId("step-back").addEventListener("click", () => go(-1));
  byId("play").addEventListener("click", () => play(byId("play").getAttribute("aria-pressed") !== "true"));
  addEventListener("hashchange", () => play(false));
}

// Which part is seen

function turn() {
  const wanted = location.hash.slice(1);
  const sections = [...document.querySelectorAll("section.part")];
  const seen = sections.find(({ id }) => id === wanted) ?? sections[0];
  for (const section of sections) section.hidden = section !== seen;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${seen.id}`) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else link.removeAttribute("aria-current");
  }
  document.title = `${seen.querySelector("h2").textContent} – Theodolite`;
  parts[seen.id]?.refresh();
  window.scrollTo(0, 0);
}
addEventListener("hashchange", turn);

// Runs and surveys

const runs = { place: null, page: 0, tag: null, chosen: [], reports: [], places: null };

async function lookForPlaces() {
  const headers = runs.places ? { "If-None-Match": runs.places } : {};
  try {
    const found = await ask("api/places", { headers });
    if (!found) return;
    runs.places = found.tag;
    showPlaces(found.content);
  } catch (error) {
    runs.places = null;
    byId("places").replaceChildren(element("p", { className: "trouble", role: "alert", textContent: error.message }));
  }
}

function showPlaces({ places, says }) {
  const shown = says.map((text) => element("p", { className: "says", textContent: text }));
  for (const { path, store, report, changed } of places) {
    const name = path === "." ? "this folder itself" : path;
    const buttons = element("div", { className: "buttons" });
    if (store) {
      const button = element("button", { type: "button", textContent: "runs", ariaLabel: `runs of ${name}` });
      button.dataset.runs = path;
      button.setAttribute("aria-pressed", String(runs.place === path));
      button.addEventListener("click", () => openStore(path));
      buttons.append(button);
    }
    if (report) {
      const button = element("button", { type: "button", textContent: "report", ariaLabel: `report of ${name}` });
      button.dataset.report = path;
      button.setAttribute("aria-pressed", String(runs.reports.includes(path)));
      button.addEventListener("click", () => openReport(path));
      buttons.append(button);
    }
    const when = element("time", { textContent: new Date(1000 * changed).toLocaleString() });
    shown.push(element("div", { className: "place" }, element("strong", { textContent: name }), element("br"), when, buttons));
  }
  byId("places").replaceChildren(...shown);
}

function openStore(path) {
  Object.assign(runs, { place: path, page: 0, tag: null, chosen: [] });
  for (const button of document.querySelectorAll("[data-runs]")) {
    button.setAttribute("aria-pressed", String(button.dataset.runs === path));
  }
  byId("filters").reset();
  byId("listing").hidden = false;
  byId("compared").hidden = true;
  byId("listing-title").textContent = path === "." ? "This folder itself" : path;
  list();
  byId("listing").scrollIntoView();
}

function openReport(path) {
  runs.reports = runs.reports.includes(path)
    ? runs.reports.filter((other) => other !== path)
    : [...runs.reports, path].slice(-2);
  for (const button of document.querySelectorAll("[data-report]")) {
    button.setAttribute("aria-pressed", String(runs.reports.includes(button.dataset.report)));
  }
  const frames = runs.reports.map((one) => {
    const known = [...byId("reports").children].find((child) => child.dataset.of === one);
    if (known) return known;
    const frame = element("iframe", { title: `report of ${one}`, src: `report?${new URLSearchParams({ place: one })}` });
    frame.setAttribute("sandbox", "allow-scripts allow-downloads");
    const box = element("div", {}, element("h3", { textContent: one }), frame);
    box.dataset.of = one;
    return box;
  });
  byId("reports").replaceChildren(...frames);
  if (runs.reports.includes(path)) byId("reports").scrollIntoView();
}

const listing = asker(byId("lines"), ({ content, tag }) => {
  runs.tag = tag;
  byId("counted").textContent = content.says[0] ?? `${counted(content.members, "run")} in ${counted(content.total, "line")}, as of now`;
  byId("lines").replaceChildren(...(content.total ? [tabled(content.tables[0], content.ids, choose)] : []));
  for (const box of byId("lines").querySelectorAll("input[type=checkbox]")) {
    box.checked = runs.chosen.includes(box.value);
    box.closest("tr").setAttribute("aria-selected", String(box.checked));
  }
  fill(byId("runs-net"), content.net);
  fill(byId("runs-task"), content.task);
  const last = Math.max(0, Math.ceil(content.total / 100) - 1);
  byId("pager").hidden = last === 0;
  byId("pager").querySelector("span").textContent = `page ${runs.page + 1} of ${last + 1}`;
  byId("before").disabled = runs.page === 0;
  byId("after").disabled = runs.page >= last;
});

function list() {
  if (runs.place === null) return;
  const query = asked(byId("filters"));
  query.set("place", runs.place);
  query.set("page", runs.page);
  listing(`api/runs?${query}`, runs.tag ? { headers: { "If-None-Match": runs.tag } } : {});
}

function fill(select, names) {
  const known = [...select.options].slice(1).map(({ value }) => value);
  if (names.join("\n") === known.join("\n")) return;
  const { value } = select;
  select.replaceChildren(select.options[0], ...names.map((name) => element("option", { value: name, textContent: name })));
  select.value = names.includes(value) ? value : "";
}

function choose(box) {
  runs.chosen = runs.chosen.filter((one) => one !== box.value);
  if (box.checked) runs.chosen = [...runs.chosen, box.value].slice(-2);
  for (const other of byId("lines").querySelectorAll("input[type=checkbox]")) {
    other.checked = runs.chosen.includes(other.value);
    other.closest("tr").setAttribute("aria-selected", String(other.checked));
  }
  compare();
}

const comparing = asker(byId("compared").querySelector(".answer"), ({ content }) =>
  show(byId("compared").querySelector(".answer"), content),
);

function compare() {
  byId("compared").hidden = runs.chosen.length < 2;
  if (runs.chosen.length < 2) return;
  const [first, second] = runs.chosen;
  comparing(`api/compare?${new URLSearchParams({ place: runs.place, first, second, metric: byId("metric").value })}`);
}

byId("metric").addEventListener("change", compare);
byId("filters").addEventListener("submit", (event) => event.preventDefault());
byId("filters").addEventListener("input", () => {
  Object.assign(runs, { page: 0, tag: null });
  list();
});
for (const [id, by] of [["before", -1], ["after", 1]]) {
  byId(id).addEventListener("click", () => {
    Object.assign(runs, { page: runs.page + by, tag: null });
    list();
  });
}

// A table and its graph

const table = { id: null };
const tableFound = byId("table-found");

const said = (text) => byId("table-state").replaceChildren(element("p", { textContent: text }));

function troubled(error) {
  byId("table-state").replaceChildren();
  tableFound.replaceChildren(element("p", { className: "trouble", role: "alert", textContent: error.message }));
  if (!(error instanceof Trouble)) throw error;
}

function armed(ready, running = false) {
  byId("table-begin").disabled = !ready || running;
  byId("table-target").disabled = !ready || running;
  byId("table-cancel").disabled = !running;
}

async function forget() {
  const { id } = table;
  table.id = null;
  if (id) await ask(`api/tables/${id}`, { method: "DELETE" }).catch(() => {});
}

async function take(file) {
  await forget();
  armed(false);
  tableFound.replaceChildren();
  said(`reading ${file.name} …`);
  try {
    if (file.size > 20 * 2 ** 20) throw new Trouble(`${file.name} is larger than 20 MB: give fewer rows, or use 'theodolite discover'`);
    const { content } = await ask(`api/tables?${new URLSearchParams({ name: file.name })}`, { method: "POST", body: file });
    table.id = content.id;
    const select = byId("table-target");
    select.replaceChildren(...content.columns.map((name) => element("option", { value: name, textContent: name })));
    select.value = content.columns.at(-1);
    said(`${content.name}: ${counted(content.rows, "row")}, ${counted(content.columns.length, "column")}`);
    armed(true);
  } catch (error) {
    troubled(error);
  }
}

async function beginTable() {
  const query = new URLSearchParams({ target: byId("table-target").value, seconds: byId("table-seconds").value });
  armed(true, true);
  tableFound.replaceChildren();
  try {
    const { id } = table;
    const still = (sentence) => {
      if (table.id === id) said(sentence);
      return table.id === id;
    };
    const begun = await ask(`api/tables/${id}/discover?${query}`, { method: "POST" }, still);
    if (!begun) return;
    let { content } = begun;
    const bar = element("progress", { max: 1, ariaLabel: "progress" });
    const words = element("p");
    byId("table-state").replaceChildren(bar, words);
    while (content.state === "running" && table.id === id) {
      const [share, label] = content.progress;
      if (share > 0) bar.value = share;
      words.textContent = `${label || "working"}, ${Math.round(content.seconds)} s`;
      await pause(250);
      const found = table.id === id && (await ask(`api/tables/${id}`, {}, () => table.id === id));
      if (found) ({ content } = found);
    }
    if (table.id !== id) return;
    byId("table-state").replaceChildren();
    if (content.found) show(tableFound, content.found);
    else throw new Trouble(content.error ?? "cancelled");
    armed(true);
  } catch (error) {
    armed(table.id !== null);
    troubled(error);
  }
}

byId("table-file").addEventListener("change", ({ target }) => target.files[0] && take(target.files[0]));
byId("table-form").addEventListener("submit", (event) => {
  event.preventDefault();
  beginTable();
});
byId("table-cancel").addEventListener("click", async () => {
  await forget();
  armed(false);
  said("Cancelled, and the table is forgotten: drop it again to begin anew.");
  byId("table-file").value = "";
});
tuned(byId("table-form").querySelector("input[type=range]"));
for (const kind of ["dragover", "dragleave", "drop"]) {
  byId("drop").addEventListener(kind, (event) => {
    event.preventDefault();
    byId("drop").classList.toggle("over", kind === "dragover");
    if (kind === "drop" && event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  });
}

async function watch() {
  for (;;) {
    if (!document.hidden && !byId("runs").hidden) {
      await lookForPlaces();
      list();
    }
    await pause(2000);
  }
}

turn();
watch();
