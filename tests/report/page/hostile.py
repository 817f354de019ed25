"""Hostile texts, and a page of the explorer alone to show them in."""

import base64
import hashlib
from pathlib import Path

from holdfast.report.explorer import Explorer
from holdfast.report.page import SCRIPTS, environment, source

HOSTILE = {
    "script": "<script>window.hacked = 1</script>",
    "end of script": "</script><script>window.hacked = 1</script>",
    "comment": "<!--<script>--><img src=x onerror='window.hacked = 1'>",
    "handler": '"><img src=x onerror=window.hacked=1><svg onload="window.hacked=1">',
    "link": "[see](javascript:window.hacked=1) <a href='javascript:window.hacked=1'>x</a>",
    "address": "https://example.org/leak?q=1 ![x](https://example.org/pixel.png)",
    "template": "{{ 7 * 7 }} {% raw %} ${window.hacked = 1} {0} %s",
    "entity": "&lt;b&gt; &#60;script&#62; &amp;",
    "formula": '=HYPERLINK("https://example.org", "x")',
    "style": "</style><style>* { display: none }</style>",
    "object": "constructor",
    "prototype": "__proto__",
    "title": "</textarea></title></noscript></select></option>",
}
"""Texts that are to be shown exactly as they are."""

SPELLINGS = {
    "ansi": ("\x1b[31mred\x1b[0m", "\\u001b[31mred\\u001b[0m"),
    "bidi": ("a\u202eb\u2066c\u200f", "a\\u202eb\\u2066c\\u200f"),
    "line ends": ("a\u2028b\u2029c\r\nd\re", "a\\u2028b\\u2029c\nd\\u000de"),
    "nul": ("a\x00b\x7f\x85", "a\\u0000b\\u007f\\u0085"),
    "unseen": ("a\u200bb\ufeff\U000e0041", "a\\u200bb\\ufeff\\u{e0041}"),
}
"""Texts with what cannot be seen or would reorder them, and how they are shown."""

LINE = "x" * 999_990 + "END OF IT."
"""A line of a million characters."""

PLAIN = "été 日本語 😀 👩‍⚕️ עברית العربية < > & \" '\n\ttab"
"""Characters of any script, which are shown as they are."""


def page_of(explorer: Explorer, path: Path, *, body: str = "") -> Path:
    """A page that holds the explorer and little else, under the policy of the report.

    Args:
        explorer: what is packed.
        path: where it goes.
        body: markup before the explorer.
    """
    script = "\n".join(map(source, SCRIPTS))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    styles = ("page.css", "report/report.css", "report/explorer.css")
    markup = (
        environment().get_template("report/explorer.html.j2").render(explorer=explorer, evidence=())
    )
    path.write_text(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'\">"
        '<meta name="color-scheme" content="light dark"><title>Explorer</title>'
        f"<style>{''.join(map(source, styles))}</style></head><body><main>{body}{markup}</main>"
        f"<script>{script}</script></body></html>",
        "utf-8",
    )
    return path
