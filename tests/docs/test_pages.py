"""The pages agree with the code: commands, options, claims, public names, version; and their links resolve."""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from xml.etree import ElementTree

import pytest

import theodolite
from theodolite.nets import list_nets

from .blocks import PAGES, ROOT, blocks, command_tree, run_python

DOCS = ROOT / "docs"
ALL = [*PAGES, ROOT / "CHANGELOG.md"]


def prose(page: Path) -> str:
    """A page without its code."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return {_slug(title) for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


def _slug(title: str) -> str:
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip())


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_links_resolve(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_file(), f"{page.name} links {target}, which is not there"
        if page.parent == DOCS:
            assert file.is_relative_to(DOCS), f"{page.name} links {target}, which is outside the site"
        if anchor:
            assert anchor in anchors(file), f"{page.name} links {target}: no such heading"


@pytest.mark.parametrize("name", sorted(command_tree()))
def test_every_command_and_option_is_documented(name: str) -> None:
    command = command_tree()[name]
    assert command.help, f"'{name}' has no help text"
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(name)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert found, f"docs/commands.md has no section '## {name}'"
    documented = set(re.findall(r"`(--?[a-z][a-z-]*)", found[1]))
    options = {o for p in command.params for o in (*p.opts, *p.secondary_opts) if o.startswith("-")} - {"--help", "-h"}
    assert documented == options, f"in '## {name}' these differ: {sorted(documented ^ options)}"


def test_every_public_name_is_documented() -> None:
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    titles = {name for title in re.findall(r"^## (.+)$", page, re.MULTILINE) for name in title.split(", ")}
    assert titles == set(theodolite.__all__)  # pyright: ignore[reportAttributeAccessIssue]


def test_every_public_name_is_in_the_reference() -> None:
    entries = set(re.findall(r"^::: (\S+)$", (DOCS / "api.md").read_text(encoding="utf-8"), re.MULTILINE))
    public = {".".join(place) for name, place in theodolite._PLACES.items() if not name.startswith("_")}
    assert entries - {"theodolite.measures.measure"} == public


def test_the_rooms_and_files_that_the_page_on_architecture_names_are_there() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "theodolite"
    named = set(re.findall(r"`((?:[a-z_0-9]+/)+(?:[a-z_0-9]+\.py)?)`", text)) - {
        "src/theodolite/",
        "tests/",
        "benchmarks/",
    }
    assert len(named) > 20
    for path in named - {"benchmarks/results/", "docs/"}:
        places = list(package.rglob(path.rstrip("/")))
        assert (package / path).exists() or places, f"docs/architecture.md names {path}, which is not there"


def test_every_polynomial_net_is_documented() -> None:
    page = (DOCS / "networks.md").read_text(encoding="utf-8")
    for net in list_nets():
        shown = (
            re.search(rf"^## {net['name']}$", page, re.MULTILINE) if net["polynomial"] else f"`{net['name']}`" in page
        )
        assert shown, f"docs/networks.md says nothing of '{net['name']}'"


def test_every_claim_is_documented() -> None:
    from theodolite.claims.contract import ordered

    rows = re.findall(r"^\| ([A-Z]\d+[a-z]?)\b", (DOCS / "claims.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [claim.id for claim in ordered()], f"docs/claims.md has the rows {rows}"


def kept() -> list[Path]:
    return sorted((ROOT / "benchmarks" / "results").glob("claims*.json"))


def test_the_page_of_claims_is_made_of_the_registry_and_of_what_was_kept() -> None:
    from theodolite.claims.archive import read
    from theodolite.cli.views.claims import claims_page

    page = (DOCS / "claims.md").read_text(encoding="utf-8")
    again = "theodolite claims page benchmarks/results/claims*.json --markdown docs/claims.md"
    assert page == claims_page(read(kept())), f"docs/claims.md is not what this makes: {again}"


def test_every_page_tells_the_verdicts_of_the_page_of_claims_and_findings_all_that_do_not_hold() -> None:
    from theodolite.claims.archive import read, standing

    verdicts = {one["id"]: one["verdict"] for one in standing(read(kept()))}
    row = re.compile(rf"^\| ([A-Z]\d+[a-z]?)\b[^|]*\| ({'|'.join(set(verdicts.values()))}) \|", re.MULTILINE)
    shown = {page.name: row.findall(page.read_text(encoding="utf-8")) for page in DOCS.glob("*.md")}
    for page, rows in shown.items():
        for name, verdict in rows:
            assert verdict == verdicts[name], f"docs/{page} and docs/claims.md differ on {name}"
    assert shown["findings.md"] == [(name, verdict) for name, verdict in verdicts.items() if verdict != "holds"]


@pytest.mark.slow
def test_the_verdicts_on_the_page_are_the_computed_ones() -> None:
    from theodolite.claims.archive import read

    said = read(kept())
    for result in theodolite.check_claims():
        archived = said[result["id"], "quick"]
        assert result["verdict"] == archived["verdict"], result["id"]
        if result["id"].startswith("T"):  # what is trained depends on the machine and on torch's version
            assert result["detail"] == archived["detail"]


def test_version_and_licence_agree() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == theodolite.__version__  # type: ignore[index]
    assert f"## [{theodolite.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "license: Apache-2.0" in citation
    assert "TERMS AND CONDITIONS FOR USE" in (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_figure_stands_alone() -> None:
    """Drawn on a white ground of its own, so that it reads on a dark page, with nothing fetched."""
    text = (DOCS / "figures" / "rank.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    ground = root.find(".//{*}path")
    assert ground is not None
    assert ground.get("style") == "fill: #ffffff"
    assert not re.search(r'href="(?!#)', text)
    assert "@import" not in text


def test_site_builds_and_fetches_nothing_from_outside(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="the site needs the extra 'docs'")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"<(script|img|link|iframe)[^>]*(src|href)=\"?(https?:)?//", text), page.name
    for sheet in tmp_path.rglob("*.css"):
        assert not re.search(r"(url\(|@import )['\"]?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet.name


def test_the_page_on_certificates_draws_what_a_certificate_means(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its ten lines against the library's draws, and its evaluation against the solutions of a large certificate."""
    import hashlib

    from theodolite.field import Modulus, draw_residues
    from theodolite.field.draw import draw_prime
    from theodolite.instruments.rank import certificate
    from theodolite.measurement import canonical

    space: dict = {"__name__": "documentation"}
    for block in blocks(DOCS / "certificates.md")[:4]:
        if block.language == "python":
            run_python(DOCS / "certificates.md", block, space)
    header, p, draw = space["header"], space["p"], space["draw"]
    m = Modulus(p)
    for stream, count, start in (("0/0/weights/layers.1.project.weight", 12, 0), ("0/0/b", 40, 7)):
        assert draw(stream, count, p, start) == m.canonical(draw_residues(stream, (count,), m, start)).tolist()
    low, high = 3 << 21, 2**23 - 64
    number = low + draw("5/1/prime", 1, 2**64)[0] % (high - low)
    assert draw_prime("5/1/prime") == max(n for n in range(number - 300, number) if _prime(n)), "the rule of the prime"

    monkeypatch.setattr(certificate, "BY_MINOR", 0)  # every certificate carries solutions
    large = theodolite.separation_rank("self-attention", depth=2, width=2, tokens=4, repeats=1, certificate=True)
    assert large.certificate is not None
    assert large.certificate["header"] == header
    columns = list(space["points"]("b", header["columns"]))
    rows = list(space["points"]("a", header["rows"]))
    matrix = [[space["network"]([{**a, **b}[site] for site in range(4)]) for b in columns] for a in rows]
    name = hashlib.sha256(canonical(header).encode()).hexdigest()
    assert len(large.certificate["solutions"]) == 4
    for k, solution in enumerate(large.certificate["solutions"]):
        assert space["times"](matrix, solution) == draw(f"certificate/{name}/{k}", header["rank"], p)


def _prime(n: int) -> bool:
    return all(n % q for q in range(2, int(n**0.5) + 1))


def test_every_rule_of_advise_is_documented_as_it_is_stated() -> None:
    from theodolite.advice.rules import RULES

    section = (DOCS / "advise.md").read_text(encoding="utf-8").partition("\n## Rules\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w-]+)` \| (.+) \|$", section, re.MULTILINE)
    assert [(name, text.replace("`", "")) for name, text in rows] == list(RULES.items())
