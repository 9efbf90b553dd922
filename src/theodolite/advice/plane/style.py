"""How the depth–width plane looks: two layouts, lineages with their forms, colours in light, dark and print."""

from __future__ import annotations

from dataclasses import dataclass

from theodolite.advice.shape import ModelShape

# Lineages that look alike in their shapes: (name, form, families as configurations name them).
LINEAGES = (
    ("GPT-2, -3, -Neo, Pythia", "circle", ("gpt2", "gpt3", "gpt_neo", "gptj", "gpt_neox")),
    ("Llama, Mistral, Mixtral", "square", ("llama", "mistral", "mixtral")),
    ("Qwen", "triangle", ("qwen2", "qwen2_moe", "qwen3", "qwen3_moe")),
    ("Gemma", "diamond", ("gemma", "gemma2", "gemma3_text")),
    ("OPT, BLOOM, Falcon", "flipped", ("opt", "bloom", "falcon")),
    ("T5, mT5, ByT5", "plus", ("t5", "mt5", "umt5")),
    ("BERT, ALBERT, ELECTRA", "cross", ("bert", "roberta", "distilbert", "electra", "albert")),
    ("ViT, DeiT", "bar", ("vit", "deit")),
    ("others", "hexagon", ()),
)


@dataclass(frozen=True)
class Layout:
    """Sizes in pixels; the legend comes below `bottom`, as high as it is."""

    name: str
    width: int
    bottom: int  # of the plane
    left: int
    right: int
    top: int
    letters: float  # height of labels
    scale: float  # of markers
    columns: int  # of the legend
    sparse: bool  # every other tick


WIDE = Layout("wide", 980, 650, 70, 20, 64, 12.0, 1.0, 3, False)
NARROW = Layout("narrow", 400, 560, 46, 10, 88, 11.0, 0.8, 1, True)


def lineage(shape: ModelShape) -> int:
    found = (place for place, (_, _, families) in enumerate(LINEAGES) if shape.family in families)
    return next(found, len(LINEAGES) - 1)


_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#7a5195", "#e69f00", "#6b7580")
STYLE = (
    ".page{fill:#fff}text{font:12px system-ui,sans-serif;fill:#1b1f23}.title{font-size:18px;font-weight:600}"
    ".soft,.tick,.legend{fill:#4f5861}.axis{font-size:13px}.grid{stroke:#e9ebee;fill:none}"
    ".size{stroke:#b9c0c7;stroke-width:.8;fill:none}.faint{fill:#5d666f;font-size:11px}"
    ".boundary{stroke:#b02e0c;stroke-width:1.8;fill:none;stroke-dasharray:2 3}"
    ".fit{stroke:#00598c;stroke-width:2.4;fill:none}.outside{stroke-dasharray:7 5}.band{fill:#00598c;opacity:.2}"
    ".used{fill:#3f8f3f;opacity:.13}.median{stroke:#2f7a2f;stroke-width:1.4;fill:none;stroke-dasharray:1 4;"
    "stroke-linecap:round}"
    ".model{stroke:#fff;stroke-width:.8}.several{fill:#fff;stroke:#4f5861;stroke-width:1.2}"
    ".number{font-size:10px;font-weight:600;pointer-events:none}"
    ".mark{fill:#b0005e;stroke:#fff;stroke-width:1}"
    ".move{stroke:#b0005e;stroke-width:1.4;fill:none}.strong{font-weight:700;font-size:14px;fill:#b0005e}"
    ".curve{font-style:italic;fill:#00598c}.label,.strong,.curve{paint-order:stroke;stroke:#fff;stroke-width:3px}"
    ".narrow text{font-size:11px}.narrow .title{font-size:16px}.narrow .strong{font-size:13px}"
    ".narrow .number{font-size:9px}"
    + "".join(f".series-{place}{{fill:{colour}}}" for place, colour in enumerate(_COLOURS))
    + "@media screen and (prefers-color-scheme:dark){.page{fill:#15181b}text{fill:#e6e8ea}"
    ".soft,.tick,.legend{fill:#a9b1b9}.grid{stroke:#282d32}.size{stroke:#4a525a}.faint{fill:#a9b1b9}"
    ".boundary{stroke:#ff9b73}.fit{stroke:#7cc0ee}.band{fill:#7cc0ee}.used{fill:#7fd07f;opacity:.14}"
    ".median{stroke:#8fd88f}.model{stroke:#15181b}.several{fill:#15181b;stroke:#a9b1b9}"
    ".mark{fill:#ff7ab8;stroke:#15181b}.move{stroke:#ff7ab8}"
    ".strong{fill:#ff7ab8}.curve{fill:#7cc0ee}.label,.strong,.curve{stroke:#15181b}"
    ".series-0{fill:#2f95d3}.series-4{fill:#c9a227}.series-6{fill:#b08cd0}.series-8{fill:#a9b1b9}}"
)

# On a phone the narrow picture takes the place of the wide one; on paper the wide one always stands.
PAGE_STYLE = (
    ":root{color-scheme:light dark}body{margin:0;background:#fff;color:#1b1f23;font:14px system-ui,sans-serif}"
    ".plane>svg{display:block;width:100%;height:auto;margin:auto}.plane>svg.wide{max-width:1200px}"
    ".plane>svg.narrow{display:none}"
    "details{max-width:1060px;margin:1rem auto;padding:0 1rem}.models{overflow-x:auto}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "td,th{padding:.15rem .7rem .15rem 0;text-align:right}"
    "td:first-child,th:first-child{text-align:left}summary{cursor:pointer}"
    "@media screen and (max-width:720px){.plane>svg.wide{display:none}"
    ".plane>svg.narrow{display:block;max-width:560px}}"
    "@media screen and (prefers-color-scheme:dark){body{background:#15181b;color:#e6e8ea}}"
    "@media print{:root{color-scheme:light}.plane{break-inside:avoid}}"
)
