"""Keys stand in no log, report, export, cache file, error or traceback."""

import base64
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log

from tests.faults import Fault, FaultyServer, faulty_server
from tests.studies import holdfast, holdfast_apart

from .driving import MARK, Study, apart

KEY = "sk-planted-0123456789abcdef"


def planted_in(folder: Path, key: str = KEY) -> list[str]:
    """Files below a folder that hold the key, in their bytes or in what they unpack to."""
    needles = [KEY.encode(), base64.b64encode(f"user:{key}".encode())]
    files = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name == "q.jsonl":
            continue
        parts = [path.read_bytes()]
        if path.suffix == ".eval":
            parts += unpacked(path)
        if any(needle in part for needle in needles for part in parts):
            files.append(str(path.relative_to(folder)))
    return files


def unpacked(path: Path) -> list[bytes]:
    """What a log holds, as text."""
    log = read_eval_log(str(path), resolve_attachments=True)
    return [log.model_dump_json().encode(), repr(log).encode()]


def followed_up(study: Study, folder: Path, env: dict[str, str]) -> list[str]:
    """What the commands after a run print; their files go into the folder."""
    texts = []
    for command in (
        ("report", study.log_dir, "-o", folder / "report.html"),
        ("table", study.log_dir, "--format", "json"),
        ("export", study.log_dir, "--format", "openai-chat", "-o", folder / "chats.jsonl"),
    ):
        result = holdfast_apart(*command, env=env)
        texts += [result.stdout, result.stderr]
    return texts


@pytest.mark.rest_slow
@pytest.mark.parametrize("kind", ["echo-key", "echo-key-busy", "status-503"])
@pytest.mark.parametrize("place", ["environment", "-M"])
@pytest.mark.parametrize("provider", ["lean", "openai"])
def test_a_key_is_written_nowhere_even_if_quoted(
    provider: str, place: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", KEY if place == "environment" else "other")
    more = ("-M", f"api_key={KEY}") if place == "-M" else ()
    with faulty_server(Fault(kind, match=MARK)) as server:
        study = Study(server, tmp_path, provider=provider, n=1)
        result = study.run(
            "--generate-config", "{max_retries: 0}", "--model-role", judge(server), *more
        )
        assert result.returncode == 3
        assert set(server.stats()["keys"]) >= {f"Bearer {KEY}"}
        outputs = [result.stdout, result.stderr]
        if kind.startswith("echo"):
            assert "[key]" in result.stderr
    assert planted_in(tmp_path) == []
    assert not any(KEY in text for text in outputs)


def judge(server: FaultyServer) -> str:
    """A helper with a key of its own in its settings."""
    return f"judge={{model: lean/judge, base_url: '{server.api}', api_key: {KEY}}}"


@pytest.mark.slow
def test_no_product_of_a_run_contains_the_key(tmp_path: Path) -> None:
    env = {**apart(), "LEAN_API_KEY": KEY, "XDG_DATA_HOME": str(tmp_path / "data")}
    env |= {"XDG_CACHE_HOME": str(tmp_path / "xdg"), "HOME": str(tmp_path)}
    with faulty_server(Fault("echo-key-busy", match=MARK, attempts=1)) as server:
        study = Study(server, tmp_path, n=2)
        run = holdfast_apart(*study.command(), env=env)
        assert run.returncode == 0, run.stderr
        outputs = [run.stdout, run.stderr, *followed_up(study, tmp_path, env)]
    assert (tmp_path / "report.html").is_file()
    assert planted_in(tmp_path) == []
    assert not any(KEY in text for text in outputs)


def test_a_password_in_an_address_is_refused_unquoted(tmp_path: Path) -> None:
    with faulty_server() as server:
        study = Study(server, tmp_path)
        with_password = server.api.replace("http://", f"http://user:{KEY}@")
        for provider in ("lean", "openai"):
            run = study.run("--model", f"{provider}/bench", "--model-base-url", with_password)
            assert run.returncode == 2
            assert "contains a password," in run.stderr
            assert KEY not in run.stderr + run.stdout
        assert server.stats()["attempts"] == 0
    assert planted_in(tmp_path) == []


@pytest.mark.rest_slow
@pytest.mark.parametrize(
    ("provider", "kind", "password"),
    [
        ("lean", "echo-key", KEY),
        ("lean", "echo-key-busy", KEY),
        *(("openai", kind, KEY) for kind in ("echo-key", "echo-key-busy", "echo-url")),
        *(("openai", kind, "pw") for kind in ("echo-key", "echo-key-busy", "echo-url")),
    ],
)
def test_a_password_from_the_environment_is_sent_not_echoed(
    provider: str, kind: str, password: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with faulty_server(Fault(kind, match=MARK)) as server:
        study = Study(server, tmp_path, provider=provider, n=1)
        url = server.api.replace("http://", f"http://user:{password}@")
        monkeypatch.setenv(f"{provider.upper()}_BASE_URL", url)
        command = study.command("--generate-config", "{max_retries: 0}")
        at = command.index("--model-base-url")
        del command[at : at + 2]
        run = holdfast(*command)
        assert run.returncode == 3
        token = base64.b64encode(f"user:{password}".encode()).decode()
        assert set(server.stats()["keys"]) == {f"Basic {token}"}
    assert planted_in(tmp_path, password) == []
    for secret in (token, f"user:{password}@", KEY):
        assert secret not in run.stdout + run.stderr


SECRETS = (
    "token", "access_token", "password", "client_secret", "private_key", "Authorization",
    "bearer", "credentials", "extra_headers", "default_headers", "accessKey",
)  # fmt: skip


@pytest.mark.parametrize("option", ["-M", "--model-role"])
def test_an_argument_that_sounds_like_a_secret_is_refused(option: str, tmp_path: Path) -> None:
    with faulty_server() as server:
        for name in SECRETS:
            value = f"judge={{model: lean/judge, base_url: '{server.api}', {name}: {KEY}}}"
            argument = f"{name}={KEY}" if option == "-M" else value
            run = Study(server, tmp_path).run(option, argument)
            assert run.returncode == 2
            (line,) = run.stderr.splitlines()
            assert f"'{name}' sounds like a secret" in line
            assert "environment variable" in line
            assert KEY not in run.stderr + run.stdout
        assert server.stats()["attempts"] == 0
    assert not (tmp_path / "r").exists()


def test_arguments_resembling_secrets_are_accepted(tmp_path: Path) -> None:
    arguments = ("max_completion_tokens=50", "tokenizer=x", "prompt_cache_key=a", "top_k=3")
    with faulty_server() as server:
        more = [part for argument in arguments for part in ("-M", argument)]
        assert Study(server, tmp_path, n=1).run(*more).returncode == 0


URLS = [
    ("http://127.0.0.1:9/v1?api-key={key}", "contains a query,"),
    ("http://127.0.0.1:9/v1#{key}", "contains a query,"),
    ("http://{key}@127.0.0.1:9/v1", "contains a password,"),
    *((url, "is not a URL") for url in (
        "127.0.0.1:9/v1", "http://", "http:///v1", "ftp://127.0.0.1/v1",
        "http://127.0.0.1:99999/v1", "http://127.0.0.1:port/v1", "http://[::1/v1",
        "http://127.0.0.1:9 /v1",
    )),
]  # fmt: skip


@pytest.mark.parametrize("place", ["option", "environment", "role"])
@pytest.mark.parametrize("provider", ["lean", "openai"])
def test_unusable_and_secret_addresses_are_refused(
    provider: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for template, fault in URLS:
        if place == "environment" and fault == "contains a password,":
            continue  # accepted and masked: the next tests
        url = template.format(key=KEY)
        model = ["--model", f"{provider}/bench"]
        if place == "option":
            model += ["--model-base-url", url]
        elif place == "environment":
            monkeypatch.setenv(f"{provider.upper()}_BASE_URL", url)
        else:
            judge = f"judge={{model: {provider}/judge, base_url: '{url}'}}"
            model = ["--model", "simulated/steadfast", "--model-role", judge]
        run = holdfast("run", "followup", "--limit", "1", "--log-dir", tmp_path / "r", *model)
        assert run.returncode == 2, run.stderr
        (line,) = run.stderr.splitlines()
        assert fault in line
        assert KEY not in run.stderr + run.stdout
    assert not (tmp_path / "r").exists()


def test_the_search_finds_a_key(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.txt").write_text(f"...{KEY}...")
    assert planted_in(tmp_path) == ["a/b.txt"]
