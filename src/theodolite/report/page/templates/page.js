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

  /* Notes, shown by pointer or focus, hidden by Escape: of columns, abilities, answers and points of a plot. */
  const tip = document.getElementById("tip");
  const hideTip = () => { tip.hidden = true; };
  const tell = (element, text) => {
    tip.textContent = text;
    tip.hidden = false;
    const at = element.getBoundingClientRect(), size = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, at.left), document.documentElement.clientWidth - size.width - 8);
    const above = at.top - size.height - 6;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above > 4 ? above : at.bottom + 6}px`;
  };
  const showTip = (element) => tell(element, element.dataset.note);
  for (const element of all(".matrix [title]")) { // instead of the browser's own, which keyboard and touch never see
    element.dataset.note = element.title;
    element.removeAttribute("title");
  }
  for (const element of all("[data-note]")) {
    element.addEventListener("mouseenter", () => showTip(element));
    element.addEventListener("focus", () => { if (element.matches(":focus-visible")) showTip(element); });
    element.addEventListener("mouseleave", hideTip);
    element.addEventListener("blur", hideTip);
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
  /* Focus by keyboard scrolls the page itself: the note then moves with what it explains instead of vanishing. */
  document.addEventListener("scroll", () => {
    const held = document.querySelector("[data-note]:hover, [data-note]:focus-visible");
    if (!tip.hidden && held) showTip(held); else hideTip();
  }, { passive: true, capture: true });

  /* The picture is one stop of the Tab key; arrow keys go from cell to cell. */
  const lines = all(".matrix tbody tr").map((row) => [...row.cells].map((cell) => cell.querySelector("a")));
  const cells = lines.flat().filter(Boolean);
  cells.forEach((link, i) => { link.tabIndex = i ? -1 : 0; });
  document.querySelector(".matrix")?.addEventListener("keydown", (event) => {
    const [down, across] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [0, 0];
    let row = lines.findIndex((line) => line.includes(document.activeElement)), column = lines[row]?.indexOf(document.activeElement);
    if (row < 0 || !(down || across)) return;
    event.preventDefault();
    do { row += down; column += across; } while (lines[row]?.[column] === null); // past what was not asked
    const next = lines[row]?.[column];
    if (!next) return;
    for (const link of cells) link.tabIndex = link === next ? 0 : -1;
    next.focus();
  });

  /* A frame says at its edge that there is more. */
  const edges = (frame) => {
    frame.classList.toggle("more-right", frame.scrollLeft + frame.clientWidth < frame.scrollWidth - 2);
    frame.classList.toggle("more-below", frame.scrollTop + frame.clientHeight < frame.scrollHeight - 2);
  };
  const sized = new ResizeObserver((entries) => { for (const entry of entries) edges(entry.target); });
  for (const frame of all(".scroll")) {
    frame.addEventListener("scroll", () => edges(frame), { passive: true });
    sized.observe(frame);
  }

  /* Downloads, made from the embedded data. */
  const points = (figure) => {
    const columns = ["panel", "series", "prediction", "x", "y", "low", "high"];
    const rows = figure.series.flatMap((s) => s.x.map((x, i) =>
      [s.panel, s.name, s.prediction, x, s.y[i], s.low ? s.low[i] : null, s.high ? s.high[i] : null]));
    const used = columns.map((name, i) => i < 5 || rows.some((row) => row[i] !== null));
    return { columns: columns.filter((_, i) => used[i]), rows: rows.map((row) => row.filter((_, i) => used[i])) };
  };
  const plainTable = ({ title, caption, command, columns, rows }) => ({
    title, caption, command, columns, rows: rows.map((row) => Object.fromEntries(row.map((v, i) => [columns[i].key, v]))),
  });
  const plainPage = () => ({
    ...page, verdicts: page.verdicts && plainTable(page.verdicts), sections: page.sections.map((section) => ({
      ...section, tables: section.tables.map(plainTable), figures: section.figures,
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
        const content = table ? plainTable(table) : figure ? figure : plainPage();
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
  });
  system.addEventListener("change", showTheme);
  showTheme();

  /* Plots: a point says its number to the pointer, and to the arrow keys once its plot has the focus. */
  const titleOf = (point) => point.dataset.told ?? point.querySelector("title")?.textContent ?? "";
  for (const plot of all(".plot")) {
    const found = all(".point", plot);
    let here = -1;
    for (const point of found) { // the tip instead of the browser's own, which comes late
      point.dataset.told = titleOf(point);
      point.querySelector("title")?.remove();
    }
    const leave = () => { found[here]?.classList.remove("here"); hideTip(); };
    const go = (to) => {
      leave();
      here = to;
      found[here].classList.add("here");
      tell(found[here], titleOf(found[here]));
    };
    plot.addEventListener("pointerover", (event) => { const at = found.indexOf(event.target); if (at >= 0) go(at); });
    plot.addEventListener("pointerout", leave);
    plot.addEventListener("blur", leave);
    plot.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step || !found.length) return;
      event.preventDefault();
      go((here + step + found.length) % found.length);
      say(titleOf(found[here]));
    });
  }
  /* A series stands out while its entry of the legend is looked at, and stays so when it was pressed. */
  for (const figure of all("figure")) {
    const entries = all(".entry", figure);
    const show = (looked) => {
      const kept = new Set(entries.filter((e) => e === looked || e.getAttribute("aria-pressed") === "true").map((e) => e.dataset.series));
      figure.classList.toggle("chosen", kept.size > 0);
      for (const series of all(".series", figure)) series.classList.toggle("shown", kept.has(series.dataset.series));
    };
    for (const entry of entries) {
      entry.addEventListener("mouseenter", () => show(entry));
      entry.addEventListener("focus", () => { if (entry.matches(":focus-visible")) show(entry); });
      entry.addEventListener("mouseleave", () => show(null));
      entry.addEventListener("blur", () => show(null));
      entry.addEventListener("click", () => {
        entry.setAttribute("aria-pressed", String(entry.getAttribute("aria-pressed") !== "true"));
        show(null);
      });
    }
  }
  /* A figure as one file: panels side by side below their legend, in the colours of the page. */
  const made = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  for (const button of all("[data-svg]")) {
    button.addEventListener("click", () => {
      const figure = document.getElementById(button.dataset.svg), title = figure.querySelector("h3").textContent;
      const panels = all(".panels > svg, .scroll > svg", figure), boxes = panels.map((p) => p.viewBox.baseVal);
      const columns = Math.min(3, panels.length), across = Math.max(...boxes.map((b) => b.width)), down = Math.max(...boxes.map((b) => b.height));
      const entries = all(".entry", figure), top = 34 + 20 * entries.length, width = columns * across + 16;
      const height = top + Math.ceil(panels.length / columns) * down + 8;
      const whole = made("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${height}`, width, height, "font-family": "sans-serif", "font-size": 12 });
      whole.append(made("rect", { width, height, fill: "var(--page)" }));
      const words = (x, y, text, weight) => { const t = made("text", { x, y, fill: "var(--ink)", "font-weight": weight }); t.textContent = text; whole.append(t); };
      words(8, 20, title, "bold");
      entries.forEach((entry, i) => {
        const mark = entry.querySelector("svg").cloneNode(true);
        mark.setAttribute("x", 8); mark.setAttribute("y", 30 + 20 * i);
        whole.append(mark);
        words(50, 41 + 20 * i, entry.querySelector("span").textContent, "normal");
      });
      panels.forEach((panel, i) => {
        const copy = panel.cloneNode(true);
        for (const [key, value] of Object.entries({ x: 8 + (i % columns) * across, y: top + Math.floor(i / columns) * down, width: boxes[i].width, height: boxes[i].height })) copy.setAttribute(key, value);
        for (const point of all(".point[data-told]", copy)) { const t = made("title", {}); t.textContent = point.dataset.told; point.append(t); }
        whole.append(copy);
      });
      const style = getComputedStyle(root);
      const text = new XMLSerializer().serializeToString(whole).replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
      save(`${nameOf(title) || figure.id}.svg`, "image/svg+xml", text);
    });
  }
})();
