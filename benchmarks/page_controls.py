"""How fast the page is: python benchmarks/page_controls.py FOLDER [--chromium PATH] [--out FILE].

FOLDER holds a survey and its runs. Milliseconds until the page is painted first (the median of seven visits with an
empty cache and a server that has answered before), and of every control of every part, set to several values: until
what it changes stands on the page, and until something is seen to happen, the answer or the bar that says that one is
on its way. The pause that the page makes to see whether a slider moves on is in both.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import Page as Tab
from playwright.sync_api import sync_playwright

from theodolite.serving.serve import Served, serve
from timing import hardware

VISITS = 7
SEEN = 200  # milliseconds by which a control has answered, or shows that it is at work
# Sets a control and waits until every answer below `places` was put anew: [answered, first seen], in milliseconds.
SET = """([control, value, places]) => new Promise((done) => {
  const input = document.querySelector(control), nodes = [...document.querySelectorAll(places)];
  const began = performance.now(), put = new Set();
  let seen = null;
  const now = () => performance.now() - began;
  const watch = new MutationObserver((changes) => {
    seen ??= now();
    for (const { type, target } of changes) {
      if (type === "childList") put.add(nodes.find((node) => node.contains(target)));
    }
    if (nodes.every((node) => put.has(node) && !node.hasAttribute("aria-busy"))) finish();
  });
  const late = setTimeout(() => finish(), 60_000);
  const finish = () => { watch.disconnect(); clearTimeout(late); done([now(), seen ?? now()]); };
  const what = { childList: true, subtree: true, attributes: true, attributeFilter: ["aria-busy"] };
  for (const node of nodes) watch.observe(node, what);
  if (input.type === "checkbox") input.click();
  else {
    input.value = value;
    for (const kind of ["input", "change"]) input.dispatchEvent(new Event(kind, { bubbles: true }));
  }
})"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with sync_playwright() as playwright, serve(given.folder, port=0, wait=False) as page:
        browser = playwright.chromium.launch(executable_path=given.chromium, args=["--no-sandbox"])
        paints = [painted(browser, page) for _ in range(VISITS)]
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(page.address)
        controls = {**parts(tab), **runs(tab)}
        browser.close()
    slow = [name for name, of in controls.items() if of["first_seen_ms"] > SEEN]
    found = {
        "benchmark": "the page's controls",
        "hardware": {**hardware(torch.device("cpu")), "threads": os.cpu_count(), "load": os.getloadavg()[0]},
        "first_paint_ms": round(statistics.median(paints)),
        "answered_within_200_ms": sum(of["answered_ms"] <= SEEN for of in controls.values()),
        "at_work_within_200_ms": sum(of["first_seen_ms"] <= SEEN for of in controls.values()),
        "controls": len(controls),
        "neither": slow,
        "by_control": controls,
    }
    print(json.dumps(found, indent=2, ensure_ascii=False))
    if given.out:
        given.out.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def painted(browser: Any, page: Served) -> float:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    tab.goto(page.address)
    paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
    while (milliseconds := tab.evaluate(paint)) is None:
        tab.wait_for_timeout(20)
    context.close()
    return milliseconds


def parts(tab: Tab) -> dict[str, Any]:
    """Every slider, number and choice of every part with controls, at four values each."""
    found = {}
    for form in tab.locator("form[data-part]").all():
        part = form.get_attribute("data-part")
        tab.click(f"nav a[href='#{part}']")
        places = f"section#{part} .answer"
        tab.locator(f"{places} .says").first.wait_for(timeout=60_000)
        tab.wait_for_timeout(1500)
        for name, values in form.evaluate(
            """(form) => [...form.elements].filter((e) => e.name && e.type !== "hidden").map((e) => {
              if (e.tagName === "SELECT") return [e.name, [...e.options].map((o) => o.value).reverse().slice(0, 4)];
              const slider = e.previousElementSibling, [low, high] = [Number(slider.min), Number(slider.max)];
              const scaled = (x) => "logarithmic" in slider.dataset ? 10 ** x : x;
              const whole = Number.isInteger(Number(slider.step)) && !("logarithmic" in slider.dataset);
              return [e.name, [0.9, 0.6, 0.35, 0.15].map((share) => {
                const value = scaled(low + share * (high - low));
                return String(whole ? Math.round(value) : Number(value.toPrecision(3)));
              })];
            })"""
        ):
            control = f"section#{part} [name={name}]"
            before = tab.locator(control).input_value()
            values = [one for one in dict.fromkeys(values) if one != before]  # the same again asks for nothing
            times = [tab.evaluate(SET, [control, value, places]) for value in values]
            found[f"{part}: {name}"] = _told(times)
            tab.evaluate(SET, [control, before, places])
    return found


def runs(tab: Tab) -> dict[str, Any]:
    """The list of the newest store: its filters, two lines compared, by another metric."""
    tab.click("nav a[href='#runs']")
    tab.locator("[data-runs]").first.click()
    tab.locator("#lines tbody tr").nth(1).wait_for(timeout=60_000)
    found = {}
    for name in ("net", "task", "status", "lines"):
        control = f"#runs-{name}"
        options = tab.locator(control).evaluate("(select) => [...select.options].map((o) => o.value)")
        times = [tab.evaluate(SET, [control, value, "#lines"]) for value in (options[1], options[0])]
        found[f"runs: {name}"] = _told(times)
    values = ("seed=1", "seed=0", "")
    found["runs: where"] = _told([tab.evaluate(SET, ["#runs-where", value, "#lines"]) for value in values])
    tab.locator("#lines input[type=checkbox]").nth(0).click()
    place = "#compared .answer"
    two = [tab.evaluate(SET, ["#lines tbody tr:nth-child(2) input", "", place])]
    found["runs: two lines compared"] = _told(two)
    metrics = [tab.evaluate(SET, ["#metric", value, place]) for value in ("unseen", "steps", "accuracy")]
    found["runs: metric"] = _told(metrics)
    return found


def _told(times: list[list[float]]) -> dict[str, int]:
    """The slowest of the values."""
    answered, seen = (max(time[place] for time in times) for place in (0, 1))
    return {"answered_ms": round(answered), "first_seen_ms": round(seen), "values": len(times)}


if __name__ == "__main__":
    main()
