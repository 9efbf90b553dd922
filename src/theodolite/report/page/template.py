"""The templates and style sheets of pages, from the folder `templates` of this package and of others."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode

import jinja2
from markupsafe import Markup, escape

from theodolite.report.table import joined


def environment(*packages: str) -> jinja2.Environment:
    """With the templates of `packages` beside the page's own; HTML is escaped, and a value left out is an error."""
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.PackageLoader(package) for package in ("theodolite.report.page", *packages)]
        ),
        autoescape=jinja2.select_autoescape(("html.j2",)),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["breakable"] = _breakable
    made.filters["hyphened"] = lambda label: joined(label, "\u00ad")  # a hyphen that is seen where a line ends
    return made


def verbatim(templates: jinja2.Environment, *names: str) -> Markup:
    """Style sheets and scripts as they are, one after the other."""
    assert templates.loader is not None
    return Markup("".join(templates.loader.get_source(templates, name)[0] for name in names))


def content_policy(style: str, *scripts: str) -> str:
    """For a page that may use this style sheet and these scripts and nothing else: no request, no text that turns out
    to be a script, no style attribute."""
    styles, allowed = (
        " ".join(f"'sha256-{b64encode(hashlib.sha256(part.encode()).digest()).decode()}'" for part in parts) or "'none'"
        for parts in ((style,), scripts)
    )
    return (
        f"default-src 'none'; script-src {allowed}; style-src {styles}; img-src data: blob:; base-uri 'none'; "
        "form-action 'none'"
    )


def _breakable(text: str) -> Markup:
    """A name may break after its underscores and slashes, not in the middle of a word."""
    return Markup(re.sub(r"([_/:,.](?=[^\W\d]))", r"\1<wbr>", str(escape(text))))
