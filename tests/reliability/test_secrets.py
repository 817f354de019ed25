"""Keys stand in no log, report, export, cache file, error or traceback."""

import base64
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log

from tests.faults import Fault, FaultyServer, faulty_server
from tests.studies import holdfast, holdfast_apart

from .driving import MARK, Study, apart

KEY = "sk-planted-0123456789abcdef"


def planted_in(folder: Path) -> list[str]:
    """Files below a folder that hold the key, in their bytes or in what they unpack to."""
    found = []
    needles = [KEY.encode(), base64.b64encode(f"user:{KEY}".encode())]
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name == "q.jsonl":
            continue
        parts = [path.read_bytes()]
        if path.suffix == ".eval":
            parts += unpacked(path)
        if any(needle in part for needle in needles for part in parts):
            found.append(str(path.relative_to(folder)))
    return found


def unpacked(path: Path) -> list[bytes]:
    """What a log holds, as text."""
    log = read_eval_log(str(path), resolve_attachments=True)
    return [log.model_dump_json().encode(), repr(log).encode()]


def followed_up(study: Study, folder: Path, env: dict[str, str]) -> list[str]:
    """What the commands after a run print; their files go into the folder."""
    said = []
    for command in (
        ("report", str(study.log_dir), "-o", str(folder / "report.html")),
        ("table", str(study.log_dir), "--format", "json"),
        (
            "export",
            str(study.log_dir),
            "--format",
            "openai-chat",
            "-o",
            str(folder / "chats.jsonl"),
        ),
    ):
        done = holdfast_apart(*command, env=env)
        said += [done.stdout, done.stderr]
    return said


@pytest.mark.rest_slow
@pytest.mark.parametrize("kind", ["echo-key", "echo-key-busy", "status-503"])
@pytest.mark.parametrize("given", ["environment", "-M"])
@pytest.mark.parametrize("provider", ["lean", "openai"])
def test_a_key_stands_nowhere_even_if_the_server_quotes_it(
    provider: str, given: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", KEY if given == "environment" else "other")
    more = ("-M", f"api_key={KEY}") if given == "-M" else ()
    with faulty_server(Fault(kind, match=MARK)) as server:
        study = Study(server, tmp_path, provider=provider, n=1)
        done = study.run(
            "--generate-config", "{max_retries: 0}", "--model-role", judge(server), *more
        )
        assert done.returncode == 3
        assert set(server.stats()["keys"]) >= {f"Bearer {KEY}"}
        printed = [done.stdout, done.stderr]
        if kind.startswith("echo"):
            assert "[key]" in done.stderr
    assert planted_in(tmp_path) == []
    assert not any(KEY in text for text in printed)


def judge(server: FaultyServer) -> str:
    """A helper with a key of its own in its settings."""
    return f"judge={{model: lean/judge, base_url: '{server.api}', api_key: {KEY}}}"


@pytest.mark.slow
def test_a_key_stands_in_nothing_that_is_made_of_a_run(tmp_path: Path) -> None:
    env = {**apart(), "LEAN_API_KEY": KEY, "XDG_DATA_HOME": str(tmp_path / "data")}
    env |= {"XDG_CACHE_HOME": str(tmp_path / "xdg"), "HOME": str(tmp_path)}
    with faulty_server(Fault("echo-key-busy", match=MARK, attempts=1)) as server:
        study = Study(server, tmp_path, n=2)
        run = holdfast_apart(*study.command(), env=env)
        assert run.returncode == 0, run.stderr
        said = [run.stdout, run.stderr, *followed_up(study, tmp_path, env)]
    assert (tmp_path / "report.html").is_file()
    assert planted_in(tmp_path) == []
    assert not any(KEY in text for text in said)


def test_a_password_in_a_base_url_is_refused_without_repeating_it(tmp_path: Path) -> None:
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
@pytest.mark.parametrize("kind", ["echo-key", "echo-key-busy"])
def test_lean_takes_a_password_out_of_the_environments_base_url(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with faulty_server(Fault(kind, match=MARK)) as server:
        study = Study(server, tmp_path, n=1)
        monkeypatch.setenv("LEAN_BASE_URL", server.api.replace("http://", f"http://user:{KEY}@"))
        command = study.command("--generate-config", "{max_retries: 0}")
        at = command.index("--model-base-url")
        del command[at : at + 2]
        run = holdfast(*command)
        assert run.returncode == 3
        token = base64.b64encode(f"user:{KEY}".encode()).decode()
        assert set(server.stats()["keys"]) == {f"Basic {token}"}
    assert planted_in(tmp_path) == []
    assert KEY not in run.stdout + run.stderr
    assert token not in run.stdout + run.stderr


@pytest.mark.parametrize(
    "name",
    [
        "token", "access_token", "password", "client_secret", "private_key", "Authorization",
        "bearer", "credentials", "extra_headers", "default_headers", "accessKey",
    ],
)  # fmt: skip
@pytest.mark.parametrize("given", ["-M", "role"])
def test_an_argument_that_sounds_like_a_secret_is_refused(
    given: str, name: str, tmp_path: Path
) -> None:
    with faulty_server() as server:
        judge = f"judge={{model: lean/judge, base_url: '{server.api}', {name}: {KEY}}}"
        more = ("-M", f"{name}={KEY}") if given == "-M" else ("--model-role", judge)
        run = Study(server, tmp_path).run(*more)
        assert server.stats()["attempts"] == 0
    assert run.returncode == 2
    assert f"'{name}' sounds like a secret" in run.stderr
    assert "environment variable" in run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert KEY not in run.stderr + run.stdout
    assert not (tmp_path / "r").exists()


def test_arguments_that_only_resemble_secrets_are_taken(tmp_path: Path) -> None:
    with faulty_server() as server:
        open_ones = ("max_completion_tokens=50", "tokenizer=x", "prompt_cache_key=a", "top_k=3")
        more = [part for one in open_ones for part in ("-M", one)]
        assert Study(server, tmp_path, n=1).run(*more).returncode == 0


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://127.0.0.1:9/v1?api-key={key}", "contains a query,"),
        ("http://127.0.0.1:9/v1#{key}", "contains a query,"),
        ("http://{key}@127.0.0.1:9/v1", "contains a password,"),
        ("127.0.0.1:9/v1", "is no URL"),
        ("http://", "is no URL"),
        ("http:///v1", "is no URL"),
        ("ftp://127.0.0.1/v1", "is no URL"),
        ("http://127.0.0.1:99999/v1", "is no URL"),
        ("http://127.0.0.1:port/v1", "is no URL"),
        ("http://[::1/v1", "is no URL"),
        ("http://127.0.0.1:9 /v1", "is no URL"),
    ],
)
@pytest.mark.parametrize("given", ["option", "environment", "role"])
@pytest.mark.parametrize("provider", ["lean", "openai"])
def test_a_base_url_that_cannot_be_used_or_holds_a_secret_is_refused_at_once(
    provider: str,
    given: str,
    url: str,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = url.format(key=KEY)
    command = ["run", "followup", "--limit", "1", "--log-dir", str(tmp_path / "r")]
    if given == "option":
        command += ["--model", f"{provider}/bench", "--model-base-url", url]
    elif given == "environment":
        if told == "contains a password,":
            pytest.skip("taken, and masked: the tests below")
        monkeypatch.setenv(f"{provider.upper()}_BASE_URL", url)
        command += ["--model", f"{provider}/bench"]
    else:
        judge = f"judge={{model: {provider}/judge, base_url: '{url}'}}"
        command += ["--model", "simulated/steadfast", "--model-role", judge]
    run = holdfast(*command)
    assert run.returncode == 2, run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert told in run.stderr
    assert KEY not in run.stderr + run.stdout
    assert not (tmp_path / "r").exists()


@pytest.mark.rest_slow
@pytest.mark.parametrize("kind", ["echo-key", "echo-key-busy", "echo-url"])
@pytest.mark.parametrize("password", [KEY, "pw"])
def test_a_password_in_openais_base_url_is_not_echoed(
    password: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with faulty_server(Fault(kind, match=MARK)) as server:
        study = Study(server, tmp_path, provider="openai", n=1)
        monkeypatch.setenv(
            "OPENAI_BASE_URL", server.api.replace("http://", f"http://user:{password}@")
        )
        command = study.command("--generate-config", "{max_retries: 0}")
        at = command.index("--model-base-url")
        del command[at : at + 2]
        run = holdfast(*command)
        assert run.returncode == 3
        token = base64.b64encode(f"user:{password}".encode()).decode()
        assert set(server.stats()["keys"]) == {f"Basic {token}"}
    assert planted_in(tmp_path) == []
    for secret in (token, f"user:{password}@", KEY):
        assert secret not in run.stdout + run.stderr
    assert not [
        path
        for path in tmp_path.rglob("*.eval")
        if any(token.encode() in part for part in unpacked(path))
    ]


def test_the_search_finds_a_key(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.txt").write_text(f"...{KEY}...")
    assert planted_in(tmp_path) == ["a/b.txt"]
