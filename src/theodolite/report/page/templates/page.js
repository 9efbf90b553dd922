(() => {
  "use strict";
  const page = JSON.parse(document.getElementById("data").textContent);
  const tables = new Map(), figures = new Map();
  if (page.verdicts) tables.set(page.verdicts.id, page.verdicts);
  for (const section of page.sections) {
    for (const table of section.tables) tables.set(table.id, table);
    for (const figure of section.figures) figures.set(figure.id, figure);
  }
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const say = (text) => { document.getElementById("said").textContent = text; };

  /* Sorting: ascending, descending, then as given. Values compare as numbers of any size; a dash stays last. */
  const key = (value) => {
    if (typeof value === "boolean") return Number(value);
    if (typeof value === "string" && /^-?\d{16,}$/.test(value)) return BigInt(value);
    if (value === "inf") return Infinity;
    if (value === "-inf") return -Infinity;
    return Array.isArray(value) || (value !== null && typeof value === "object") ? JSON.stringify(value) : value;
  };
  const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const compare = (a, b) => {
    if (typeof a === "string" || typeof b === "string") return words.compare(String(a), String(b));
    return a < b ? -1 : a > b ? 1 : 0;
  };
  const order = (rows, column, direction) => {
    const indices = rows.map((_, i) => i);
    if (direction === "none") return indices;
    const sign = direction === "ascending" ? 1 : -1;
    const keys = rows.map((row) => key(row[column]));
    return indices.sort((i, j) => {
      if (keys[i] === null || keys[j] === null) return (keys[i] === null) - (keys[j] === null) || i - j;
      return sign * compare(keys[i], keys[j]) || i - j;
    });
  };
  const next = { none: "ascending", ascending: "descending", descending: "none" };
  for (const element of all("table[data-table]")) {
    const table = tables.get(element.dataset.table);
    const heads = all("thead th", element), body = element.tBodies[0], lines = [...body.rows];
    heads.forEach((head, column) => {
      head.setAttribute("aria-sort", "none");
      head.querySelector("button").addEventListener("click", () => {
        const direction = next[head.getAttribute("aria-sort")];
        for (const other of heads) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", direction);
        body.append(...order(table.rows, column, direction).map((i) => lines[i]));
        say(direction === "none" ? "Rows in their first order" : `Sorted by ${table.columns[column].label}, ${direction}`);
      });
    });
  }

  /* Notes on columns, shown by pointer or focus, hidden by Escape. */
  const tip = document.getElementById("tip");
  const hideTip = () => { tip.hidden = true; };
  const showTip = (button) => {
    tip.textContent = button.dataset.note;
    tip.hidden = false;
    const at = button.getBoundingClientRect(), size = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, at.left), document.documentElement.clientWidth - size.width - 8);
    const above = at.top - size.height - 6;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above > 4 ? above : at.bottom + 6}px`;
  };
  for (const button of all("[data-note]")) {
    button.addEventListener("mouseenter", () => showTip(button));
    button.addEventListener("focus", () => { if (button.matches(":focus-visible")) showTip(button); });
    button.addEventListener("mouseleave", hideTip);
    button.addEventListener("blur", hideTip);
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
  /* Focus by keyboard scrolls the page itself: the note then moves with what it explains instead of vanishing. */
  document.addEventListener("scroll", () => {
    const held = document.querySelector("[data-note]:hover, [data-note]:focus-visible");
    if (!tip.hidden && held) showTip(held); else hideTip();
  }, { passive: true, capture: true });

  /* Downloads, made from the embedded data. */
  const seriesOf = (figure) => figure.plots.flatMap((plot, panel) => plot.data
    .filter((trace) => trace.meta.role === "line")
    .map((trace) => ({
      panel: figure.panels[panel], name: trace.meta.name, prediction: trace.meta.dashed,
      x: trace.meta.x ?? trace.x, y: trace.meta.y ?? trace.y, low: trace.meta.low, high: trace.meta.high,
    })));
  const points = (figure) => {
    const columns = ["panel", "series", "prediction", "x", "y", "low", "high"];
    const rows = seriesOf(figure).flatMap((s) => s.x.map((x, i) =>
      [s.panel, s.name, s.prediction, x, s.y[i], s.low ? s.low[i] : null, s.high ? s.high[i] : null]));
    const used = columns.map((name, i) => i < 5 || rows.some((row) => row[i] !== null));
    return { columns: columns.filter((_, i) => used[i]), rows: rows.map((row) => row.filter((_, i) => used[i])) };
  };
  const plainTable = ({ title, caption, command, columns, rows }) => ({
    title, caption, command, columns, rows: rows.map((row) => Object.fromEntries(row.map((v, i) => [columns[i].key, v]))),
  });
  const plainFigure = (figure) => {
    const { title, alt, caption, command, x_label, y_label } = figure;
    return { title, alt, caption, command, x_label, y_label, series: seriesOf(figure) };
  };
  const plainPage = () => ({
    ...page, verdicts: page.verdicts && plainTable(page.verdicts), sections: page.sections.map((section) => ({
      ...section, tables: section.tables.map(plainTable), figures: section.figures.map(plainFigure),
    })),
  });
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    const text = typeof value === "object" ? JSON.stringify(value) : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csv = (columns, rows) => [columns, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
  const save = (name, type, text) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const nameOf = (text) => text.normalize("NFKD").replace(/[^A-Za-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 60).toLowerCase();
  for (const button of all("[data-download]")) {
    button.addEventListener("click", () => {
      const { of, download } = button.dataset;
      const table = tables.get(of), figure = figures.get(of);
      const name = nameOf((table ?? figure ?? page).title) || of;
      if (download === "csv") {
        const grid = table ? { columns: table.columns.map((c) => c.key), rows: table.rows } : points(figure);
        save(`${name}.csv`, "text/csv;charset=utf-8", csv(grid.columns, grid.rows));
      } else {
        const content = table ? plainTable(table) : figure ? plainFigure(figure) : plainPage();
        save(`${name}.json`, "application/json", JSON.stringify(content, null, 2) + "\n");
      }
      say(`Saved ${name}.${download}`);
    });
  }
  for (const details of all(".figure-data")) {
    details.addEventListener("toggle", () => {
      const room = details.querySelector(".scroll");
      if (!details.open || room.firstChild) return;
      const grid = points(figures.get(details.closest("figure").id));
      const table = document.createElement("table"), head = table.createTHead().insertRow(), body = table.createTBody();
      for (const name of grid.columns) {
        const th = document.createElement("th");
        th.scope = "col"; th.textContent = name; th.className = "plain";
        head.append(th);
      }
      for (const row of grid.rows) {
        const line = body.insertRow();
        for (const value of row) {
          const td = line.insertCell();
          td.textContent = value === null ? "–" : typeof value === "boolean" ? (value ? "yes" : "no") : String(value);
          if (typeof value === "number") td.className = "number";
        }
      }
      room.append(table);
    });
  }

  /* Commands. */
  const copied = (button, text) => {
    const before = button.innerHTML;
    button.textContent = "Copied";
    say(`Copied ${text}`);
    setTimeout(() => { button.innerHTML = before; }, 1500);
  };
  const copyByHand = (text) => {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "hidden";
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  };
  for (const button of all("[data-copy]")) {
    button.addEventListener("click", async () => {
      const text = button.dataset.copy;
      if (button.textContent === "Copied") return;
      try { await navigator.clipboard.writeText(text); } catch (error) { copyByHand(text); button.focus(); }
      copied(button, text);
    });
  }

  /* Theme: the system's, unless the button said otherwise. */
  const root = document.documentElement, themeButton = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const showTheme = () => { themeButton.textContent = isDark() ? "Light theme" : "Dark theme"; };
  themeButton.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("theodolite-theme", root.dataset.theme); } catch (error) { /* storage may be off */ }
    showTheme();
    recolour();
  });
  system.addEventListener("change", () => { showTheme(); recolour(); });
  showTheme();

  /* Plots: one per panel. On the page, titles, axis labels and the legend are text beside the plot. */
  const plots = all(".plot");
  const touch = matchMedia("(pointer: coarse)").matches;
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const clear = (colour, alpha) => {
    const part = (i) => parseInt(colour.slice(i, i + 2), 16);
    return `rgba(${part(1)},${part(3)},${part(5)},${alpha})`;
  };
  const painted = (trace) => {
    const colour = css(`--series-${trace.meta.colour}`);
    const paint = { ...trace, line: { ...trace.line, color: colour } };
    if (trace.marker) paint.marker = { ...trace.marker, color: colour, line: { ...trace.marker.line, color: colour } };
    if (trace.error_y) paint.error_y = { ...trace.error_y, color: clear(colour, 0.65) };
    if (trace.error_x) paint.error_x = { ...trace.error_x, color: clear(colour, 0.65) };
    if (trace.fillcolor) paint.fillcolor = clear(colour, 0.18);
    return paint;
  };
  const axisOf = (axis) => ({
    ...axis, gridcolor: css("--faint"), linecolor: css("--rule"), tickcolor: css("--rule"), zeroline: false, showline: true,
    ticks: "outside", ticklen: 4, color: css("--soft"),
  });
  const shapeOf = (shape) => ({
    ...shape, fillcolor: shape.name === "band" ? css("--faint") : undefined,
    line: { ...shape.line, color: css(shape.name === "divider" ? "--faint" : "--soft") },
  });
  const noteOf = (note) => ({ ...note, bgcolor: clear(css("--page"), 0.8), font: { ...note.font, color: css("--soft") } });
  const layoutOf = (layout) => ({
    ...layout, shapes: layout.shapes?.map(shapeOf), annotations: layout.annotations?.map(noteOf), xaxis: axisOf(layout.xaxis), yaxis: axisOf(layout.yaxis),
    paper_bgcolor: css("--page"), plot_bgcolor: css("--page"),
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: css("--ink") },
    hoverlabel: { bgcolor: css("--raised"), bordercolor: css("--rule"), font: { family: getComputedStyle(document.body).fontFamily, color: css("--ink"), size: 12 }, align: "left" },
  });
  const onPage = (layout) => {
    const full = layoutOf(layout);
    return {
      ...full, showlegend: false, title: undefined, margin: { l: 40, r: 10, t: 8, b: 28, ...layout.margin },
      dragmode: touch ? false : "zoom",
      xaxis: { ...full.xaxis, title: undefined, fixedrange: touch || layout.xaxis.fixedrange === true },
      yaxis: { ...full.yaxis, title: undefined, fixedrange: touch || layout.yaxis.fixedrange === true },
    };
  };
  const config = { displayModeBar: false, displaylogo: false, showLink: false, responsive: true, plotlyServerURL: "" };
  const specOf = (element) => // a copy, since Plotly writes into what it is given
    structuredClone(figures.get(element.dataset.figure).plots[Number(element.dataset.panel)]);
  const siblings = (id) => plots.filter((element) => element.dataset.figure === id);
  const hidden = new Map(); // figure id to the names switched off
  const dataOf = (element) => specOf(element).data.map((trace) => ({
    ...painted(trace), visible: !(hidden.get(element.dataset.figure)?.has(trace.meta.name)),
  }));
  const draw = (element) => Plotly.react(element, dataOf(element), onPage(specOf(element).layout), config);
  const resetOf = (id) => document.querySelector(`[data-reset="${id}"]`);
  let following = false;
  const drawFirst = async (element) => {
    if (element.dataset.begun) return;
    element.dataset.begun = "yes";
    await Plotly.newPlot(element, dataOf(element), onPage(specOf(element).layout), config);
    element.dataset.drawn = "yes";
    element.on("plotly_relayout", async (change) => {
      const zoomed = ["xaxis.range[0]", "yaxis.range[0]"].some((name) => name in change);
      if (!zoomed || following) return;
      following = true;
      resetOf(element.dataset.figure).hidden = false;
      const range = [...element.layout.yaxis.range];
      const plain = { "xaxis.tickmode": "auto", "yaxis.tickmode": "auto" }; // fixed ticks suit the whole range only
      if (element.layout.xaxis.type === "category") delete plain["xaxis.tickmode"];
      for (const other of siblings(element.dataset.figure)) {
        if (!other.dataset.drawn) continue;
        await Plotly.relayout(other, other === element ? plain : { ...plain, "yaxis.range": range });
      }
      following = false;
    });
    element.on("plotly_doubleclick", () => { resetZoom(element.dataset.figure); return false; });
  };
  const resetZoom = (id) => {
    for (const element of siblings(id)) if (element.dataset.drawn) draw(element);
    resetOf(id).hidden = true;
  };
  function recolour() { for (const element of plots) if (element.dataset.drawn) draw(element); }
  for (const button of all("[data-reset]")) button.addEventListener("click", () => resetZoom(button.dataset.reset));
  for (const button of all(".series")) {
    button.addEventListener("click", () => {
      const id = button.closest("figure").id, name = button.dataset.series;
      const off = hidden.get(id) ?? new Set();
      if (!off.delete(name)) off.add(name);
      hidden.set(id, off);
      button.setAttribute("aria-pressed", String(!off.has(name)));
      for (const element of siblings(id)) if (element.dataset.drawn) {
        Plotly.restyle(element, { visible: specOf(element).data.map((trace) => !off.has(trace.meta.name)) });
      }
    });
  }
  for (const button of all("[data-svg]")) {
    button.addEventListener("click", () => {
      const element = siblings(button.dataset.svg)[Number(button.dataset.panel)];
      const figure = figures.get(button.dataset.svg);
      const layout = { ...layoutOf(specOf(element).layout), margin: undefined, legend: { orientation: "h", y: -0.22, yanchor: "top", x: 0 } };
      const filename = nameOf(`${figure.title} ${figure.panels[Number(button.dataset.panel)]}`) || figure.id;
      Plotly.downloadImage({ data: dataOf(element), layout, config }, { format: "svg", width: 640, height: Math.max(520, element.clientHeight + 200), filename });
    });
  }
  /* A plot is drawn when it comes near the screen: a long page opens at once. */
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) {
      seen.unobserve(entry.target);
      drawFirst(entry.target);
    }
  }, { rootMargin: "600px" });
  for (const element of plots) seen.observe(element);
  addEventListener("beforeprint", () => { for (const element of plots) drawFirst(element); });
})();
