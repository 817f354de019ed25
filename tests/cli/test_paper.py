"""Pictures for print: as wide as asked for, with type that can be read, and words for ids."""

import json
import re
from pathlib import Path

import pytest
import vl_convert
from tests.studies import holdfast

from holdfast import figure

DRAWN = ("--table", "accuracy", "--format")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("paper") / "r"
    run = holdfast(
        "run", "followup", "--model", "simulated/claude-sonnet-4", "-T", "contexts=synthetic",
        "-T", "techniques=double-check,authority-prior,rag-style", "--log-dir", folder,
        "--limit", "10",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return str(folder)


def svg(study: str, *more: str | Path) -> str:
    run = holdfast("table", study, *DRAWN, "svg", *map(str, more))
    assert run.returncode == 0, run.stderr
    return run.stdout


def types(drawn: str) -> list[float]:
    """Points of every text of an SVG whose unit is one."""
    return [float(one) for one in re.findall(r'font-size="([\d.]+)', drawn)]


def words(drawn: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)", drawn)


@pytest.mark.parametrize(
    ("width", "points"), [("3.3in", 237.6), ("6.9in", 496.8), ("8.5cm", 240.945), ("90mm", 255.118)]
)
@pytest.mark.rest_slow
def test_a_picture_is_as_wide_as_asked_for_with_type_of_eight_points(
    width: str, points: float, study: str
) -> None:
    drawn = svg(study, "--width", width)
    size = re.search(r'width="([\d.]+)pt" height="[\d.]+pt" viewBox="(\S+) 0 (\S+) ', drawn)
    assert size is not None
    assert float(size[1]) == float(size[3]) == pytest.approx(points, abs=0.01)
    assert float(size[2]) <= 0, "what is drawn is no wider than the picture"
    assert min(types(drawn)) == 8
    assert max(types(drawn)) < 12


def test_the_type_is_of_the_size_asked_for(study: str) -> None:
    assert min(types(svg(study, "--width", "6.9in", "--font-size", "10"))) == 10
    # without a unit of print there are 96 pixels an inch
    assert min(types(svg(study, "--font-size", "9"))) == 12


def test_a_pdf_has_a_page_of_that_width_and_its_fonts(study: str, tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    run = holdfast("table", study, *DRAWN, "pdf", "--width", "3.3in", "-o", file)
    assert run.returncode == 0, run.stderr
    pdf = file.read_bytes()
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+) ", pdf)
    assert box is not None
    assert float(box[1]) == pytest.approx(237.6, abs=0.05)
    assert b"/FontFile" in pdf


def test_a_png_has_the_pixels_of_print(study: str, tmp_path: Path) -> None:
    file = tmp_path / "a.png"
    assert holdfast("table", study, *DRAWN, "png", "--width", "3.3in", "-o", file).returncode == 0
    assert int.from_bytes(file.read_bytes()[16:20]) == 990


def test_without_a_title_it_still_says_that_it_is_simulated(study: str) -> None:
    title = "Accuracy after each challenge"
    assert any(title in one for one in words(svg(study)))
    left = words(svg(study, "--no-title"))
    assert "SIMULATED" in left
    assert not any(title in one or "Whiskers" in one for one in left)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("l.toml", '[techniques]\nrag-style = "Retrieved"\n[models]\n'
                   '"simulated/claude-sonnet-4" = "Model A"\n[families]\ncontext = "Texts"'),
        ("l.csv", "id,words\nrag-style,Retrieved\nsimulated/claude-sonnet-4,Model A\n"
                  "context,Texts\n"),
    ],
)  # fmt: skip
def test_ids_become_words_and_keep_their_marks(
    name: str, text: str, study: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_text(text)
    before, after = svg(study), svg(study, "--labels", file)
    assert {"Retrieved", "Model A", "average of Texts"} <= set(words(after))
    assert "average of told a wrong letter" in words(after), "families have words of their own"
    assert {"RAG style", "double check", "authority prior"} <= set(words(before)), (
        "words by default"
    )
    assert not {"RAG style", "rag-style"} & set(words(after))
    # a mark whose place is renamed without its axis stands at the top
    places = [re.findall(r"role-mark.*?</g>", one) for one in (before, after)]
    assert len(places[0]) == len(places[1])
    rows = [set(re.findall(r"translate\([\d.]+,([\d.]+)\)", "".join(group))) for group in places]
    assert len(rows[0]) == len(rows[1])


def test_the_chart_of_python_is_the_picture_of_the_command(study: str, tmp_path: Path) -> None:
    file = tmp_path / "l.toml"
    file.write_text('rag-style = "Retrieved"')
    chart = figure(study, width="3.3in", title=False, labels=str(file))
    drawn = vl_convert.vegalite_to_svg(json.dumps(chart.to_dict(validate=False)))
    assert words(drawn) == words(svg(study, "--width", "3.3in", "--no-title", "--labels", file))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--format", "svg", "--width", "3.3"), "--width: '3.3' is not a width"),
        (("--format", "svg", "--width", "0in"), "Give 1in to 40in,"),
        (("--format", "svg", "--width", "1in"), "Give a larger --width"),
        (("--format", "svg", "--font-size", "1"), "Give 4 to 48"),
        (("--format", "md", "--width", "3in"), "--format: md is not a picture format"),
        (("--format", "svg", "--labels", "rag-stile = 'A'"), "Did you mean 'rag-style'"),
        (("--format", "svg", "--labels", "rag-style = 3"), "'rag-style' has no words"),
        (("--format", "svg", "--labels", "rag-style = "), "is not valid TOML"),
        (
            ("--format", "svg", "--labels", "rag-style = 'A'\ndouble-check = 'A'"),
            "'rag-style' and 'double-check' have the same words",
        ),
        (("--format", "pdf", "--table", "flips"), "table 'flips' has no figure. Figures:"),
    ],
)
def test_what_cannot_be_printed_is_one_line_with_a_remedy(
    arguments: tuple[str, ...], expected: str, study: str, tmp_path: Path
) -> None:
    given = list(arguments)
    if "--labels" in given:
        (tmp_path / "l.toml").write_text(given[-1])
        given[-1] = str(tmp_path / "l.toml")
    run = holdfast("table", study, *given)
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = [one for one in run.stderr.splitlines() if "unfinished" not in one]
    assert expected in line
