"""How large, how long and how fast a report is: python benchmarks/report_page.py REPORT.html … [--chromium PATH].

Bytes of the file; the height of the page on a screen of 1400 pixels and on a phone of 390; the first paint, the median
of seven visits with a browser that is already running, and the time until everything is loaded and its script has run.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

_VISITS = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reports", nargs="+", type=Path)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    given = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=given.chromium, args=["--no-sandbox"])
        for report in given.reports:
            print(json.dumps(measure(browser, report)))
        browser.close()


def measure(browser: Browser, report: Path) -> dict[str, Any]:
    sizes = {width: visit(browser, report, width) for width in (1400, 390)}
    visits = [visit(browser, report, 1400) for _ in range(_VISITS)]
    return {
        "report": str(report),
        "bytes": report.stat().st_size,
        "height_1400": sizes[1400][0],
        "height_390": sizes[390][0],
        "first_paint_ms": round(statistics.median(paint for _, paint, _ in visits)),
        "loaded_ms": round(statistics.median(loaded for _, _, loaded in visits)),
    }


def visit(browser: Browser, report: Path, width: int) -> tuple[int, float, float]:
    """Height of the page, milliseconds to its first paint and until it is loaded."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(report.resolve().as_uri())
    height = page.evaluate("document.documentElement.scrollHeight")
    paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
    while (milliseconds := page.evaluate(paint)) is None:
        page.wait_for_timeout(20)
    loaded = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    page.close()
    return height, milliseconds, loaded


if __name__ == "__main__":
    main()
