from pathlib import Path

from benchmarks.house import code_lines, naming, sizes


def test_blank_lines_comments_and_docstrings_are_no_code() -> None:
    source = (
        '"""What it is."""\n\n# why\nx = (\n    1\n)\n\n\n'
        'def f():\n    """One.\n\n    Two.\n    """\n    return "a"\n'
    )
    assert code_lines(source) == 5


def test_rooms_are_counted_and_a_protocol_is_looked_for_outside_its_folder(tmp_path: Path) -> None:
    for name, text in {
        "errors.py": "x = 1\n",
        "protocols/medfuzz/method.py": "fuzz = 1\ny = 2\n",
        "protocols/installed.py": "line = 'medfuzz'\n",
        "report/words.toml": "a = 'the attacker'\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    rooms = sizes(tmp_path)
    assert rooms["protocols"] == {"files": 2, "lines": 3, "code": 3}
    assert rooms["."] == {"files": 1, "lines": 1, "code": 1}
    assert naming(tmp_path, "medfuzz") == ["protocols/installed.py", "report/words.toml"]
