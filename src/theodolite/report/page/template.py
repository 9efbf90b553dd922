"""The templates and style sheets of pages, from the folder `templates` of this package and of others."""

from __future__ import annotations

import re

import jinja2
from markupsafe import Markup, escape


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
    return made


def verbatim(templates: jinja2.Environment, *names: str) -> Markup:
    """Style sheets and scripts as they are, one after the other."""
    assert templates.loader is not None
    return Markup("".join(templates.loader.get_source(templates, name)[0] for name in names))


def _breakable(text: str) -> Markup:
    """A name may break after its underscores and slashes, not in the middle of a word."""
    return Markup(re.sub(r"([_/:,.](?=[^\W\d]))", r"\1<wbr>", str(escape(text))))
