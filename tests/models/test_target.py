"""Target files: texts are data, secrets stay where they are, and faults are told in one line."""

import json
from pathlib import Path

import pytest

from holdfast.errors import InputError
from holdfast.models.target import name_target, read_target
from holdfast.models.templates import TemplateFaultError

HOSTILE = 'a "b" \\ {{ 7 * 7 }} {% raw %} ${SECRET_KEY} <|im_end|>\n\u202e é 😀 \x00'
SECRET = 'k"{{ 1 }}\\ey-0123456789'


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "app.toml"
    path.write_text(text, "utf-8")
    return str(path)


BODIES = {
    "table": 'body = { all = "{{ messages }}", last = "{{ last }}", mixed = "<{{ last }}>" }',
    "text": 'body = \'{"all": {{ messages | tojson }}, "last": {{ last | tojson }}}\'',
}


@pytest.mark.parametrize("kind", BODIES)
def test_texts_pass_unharmed_and_hold_no_template(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", SECRET)
    file = written(
        tmp_path,
        f'url = "http://h/{{{{ last }}}}?k=${{SECRET_KEY}}"\nreply = "$.a"\n'
        f'headers = {{ Authorization = "Bearer ${{SECRET_KEY}}" }}\n{BODIES[kind]}\n',
    )
    target = name_target(file)
    messages = [{"role": "user", "content": HOSTILE}]
    url, headers, body = target.filled(target.values(messages=messages, last=HOSTILE))
    sent = json.loads(body or b"")
    assert sent["all"] == messages
    assert sent["last"] == HOSTILE
    assert sent.get("mixed", f"<{HOSTILE}>") == f"<{HOSTILE}>"
    assert headers["Authorization"] == f"Bearer {SECRET}"
    # the variable that the file names is sent, the one that a message names is not
    assert SECRET not in (body or b"").decode()
    assert "/" not in url.removeprefix("http://h/")
    assert SECRET in url


@pytest.mark.parametrize("document", [None, HOSTILE])
def test_a_text_of_messages_holds_a_document_as_the_result_of_a_tool(
    document: str | None, tmp_path: Path
) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "assistant.md").read_text("utf-8")
    _, start, rest = guide.partition("`{% if document %}")
    tool = (start + rest.partition("`")[0]).strip("`")
    each = "{% for m in messages %}{{ m | tojson }}{{ ',' if not loop.last }}{% endfor %}"
    body = f"url = 'http://h/'\nbody = '''{{\"messages\": [{each}{tool}]}}'''"
    target = read_target(written(tmp_path, body))
    assert target.takes_documents
    messages = [{"role": "user", "content": HOSTILE}] * 3
    _, _, sent = target.filled(target.values(messages=messages, last="x", document=document))
    results = [{"role": "tool", "content": document}] if document else []
    assert json.loads(sent or b"") == {"messages": messages + results}


def test_no_value_changes_the_host(tmp_path: Path) -> None:
    target = read_target(
        written(tmp_path, 'url = "http://h/{{ session }}"\nbody = { m = "{{ last }}" }\n[session]')
    )
    for id in ("../x", "@evil/", "//evil", "#", "?", "\\\\evil"):
        url, _, _ = target.filled(target.values(session=id, last="x"))
        assert url.startswith("http://h/")
        assert not set("/?#@") & set(url.removeprefix("http://h/"))
    file = written(tmp_path, 'url = "http://h{{ last }}/x"\nbody = { m = "{{ messages }}" }')
    with pytest.raises(InputError, match="changes the host"):
        name_target(file)


def test_a_template_reads_nothing_but_what_the_file_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", SECRET)
    for expression in (
        "messages.__class__.__mro__[1].__subclasses__()",
        "last.__init__.__globals__",
        "variables['SECRET_KEY']",
        "variables.__class__.__init__.__globals__",
        "cycler.__init__.__globals__.os.environ",
    ):
        x = f"<{{{{ {expression} }}}}>"
        text = f'url = "http://h/"\nbody = {{ m = "{{{{ messages }}}}", x = "{x}" }}'
        try:
            target = read_target(written(tmp_path, text))
            _, _, body = target.filled(target.values(messages=[], last="x"))
        except (InputError, TemplateFaultError):
            continue
        assert SECRET not in (body or b"").decode(), expression


def test_the_fingerprint_tells_replies_apart_and_holds_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        'url = "http://h/"\nheaders = { Authorization = "${SECRET_KEY}" }\n'
        'body = { m = "{{ messages }}" }\nreply = "$.a"\n'
    )
    monkeypatch.setenv("SECRET_KEY", "one-secret")
    first = name_target(written(tmp_path, text)).fingerprint
    monkeypatch.setenv("SECRET_KEY", "other-secret")
    assert name_target(written(tmp_path, text)).fingerprint == first
    assert name_target(written(tmp_path, text + "timeout = 5\nrate = 1\n")).fingerprint == first
    for a, b in (("$.a", "$.b"), ("http://h/", "http://i/"), ("{{ messages }}", "{{ messages }} ")):
        assert name_target(written(tmp_path, text.replace(a, b))).fingerprint != first


FAULTS = {
    'body = { m = "{{ messages }}" }': ("field 'url': is missing", "Write url"),
    'url = "h"\nbody = { m = "{{ messages }}" }': ("field 'url': is not a URL", "Write http://"),
    'url = "http://u:p@h/"\nbody = { m = "{{ messages }}" }': ("contains a password", "Basic ${"),
    'url = "http://h/"\nbody = { m = "{{ mesages }}" }': ("unknown name 'mesages'", "'messages'"),
    'url = "http://h/"\nbody = { m = "{{ last" }': ("is not a template", "Correct"),
    'url = "http://h/"\nbody = { m = "{{ last }}" }': ("there is no session", "add [session]"),
    'url = "http://h/"\nbody = { m = "{{ last }}" }\n[session]': (
        "no request names the session", "Write {{ session }}",
    ),
    "url = 'http://h/'\nbody = '{\"m\": \"{{ messages }}\"}'": (
        "is not valid JSON once filled", "tojson",
    ),
    'url = "http://h/"\nbody = { m = "{{ messages }}" }\nreply = "$..["': (
        "is not a JSONPath", "Write $.answer",
    ),
    'url = "http://h/"\nbody = { m = "{{ messages }}" }\nrepli = "$.a"': (
        "unknown key 'repli'", "Did you mean 'reply'",
    ),
    'url = "http://h/"\nmethod = "FETCH"\nbody = { m = "{{ messages }}" }': ("'FETCH'", "POST"),
    'url = "http://h/"\nheaders = { X-Api-Key = "abc" }\nbody = { m = "{{ messages }}" }': (
        "'X-Api-Key' holds a secret", "${APP_KEY}",
    ),
    'url = "http://h/"\nheaders = { A = "${UNSET_VARIABLE}" }\nbody = { m = "{{ messages }}" }': (
        "'UNSET_VARIABLE' is not set", "Set UNSET_VARIABLE",
    ),
    'url = "http://h/"\nbody = { m = "{{ messages }}" }\ndocument = { file = "../x" }': (
        "leads out of the folder", "",
    ),
    'url = "http://h/"\nbody = { m = "{{ messages }}" }\ntimeout = 0': ("greater than 0", ""),
    'url = "http://h/"\nbody = { m = "{{ 1 / 0 }}{{ messages }}" }': ("ZeroDivisionError", ""),
}  # fmt: skip


@pytest.mark.parametrize("text", FAULTS)
def test_a_fault_is_told_in_one_line_with_its_remedy(text: str, tmp_path: Path) -> None:
    fault, remedy = FAULTS[text]
    with pytest.raises(InputError) as error:
        name_target(written(tmp_path, text))
    line = str(error.value)
    assert "app.toml" in line
    assert fault in line
    assert remedy in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("name", "header", "value", "is_masked"),
    [
        ("APP_TENANT", "X-Tenant", "cardiology", False),
        ("APP_YEAR", "X-Year", "2024", False),
        ("APP_TENANT", "X-Tenant", "t-77aa", True),
        ("APP_KEY", "X-Tenant", "dragon", True),
        ("APP_TENANT", "Authorization", "dragon", True),
    ],
)
def test_words_that_are_no_secrets_stay_in_replies(
    name: str, header: str, value: str, is_masked: bool, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv(name, value)
    body = 'body = { m = "{{ messages }}" }'
    file = written(tmp_path, f'url = "http://h/"\nheaders = {{ {header} = "${{{name}}}" }}\n{body}')
    reply = f"He went to {value}."
    assert (read_target(file).variables.masked(reply) != reply) is is_masked
