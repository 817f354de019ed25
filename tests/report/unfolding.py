"""The whole markup of a page, with its folded parts in their places."""

import base64
import json
import re
import zlib

_PACK = re.compile(
    r'(<details class="folded".*?</summary>)\s*<script type="application/octet-stream">'
    r"([A-Za-z0-9+/=]*)</script>",
    re.S,
)
_RAW = -15


def unfolded(html: str) -> str:
    """Return the page as it is once every part is open."""
    return _PACK.sub(lambda match: match[1] + _inflated(match[2]), html)


def _inflated(text: str) -> str:
    return str(json.loads(zlib.decompress(base64.b64decode(text), _RAW)))
