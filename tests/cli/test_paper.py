"""Pictures for print: as wide as asked for, with type that can be read, and words for ids."""

import json
import re
from pathlib import Path

import pytest
import vl_convert
from tests.cli.commands import facts_of
from tests.studies import holdfast

from holdfast import figure

PICTURE = ("--table", "accuracy", "--format")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("paper") / "r"
    facts_of(
        "run", "followup", "--model", "simulated/claude-sonnet-4", "-T", "contexts=synthetic",
        "-T", "techniques=double-check,authority-prior,rag-style", "--log-dir", folder,
        "--limit", "10",
    )  # fmt: skip
    return str(folder)


def svg(study: str, *more: str | Path) -> str:
    run = holdfast("table", study, *PICTURE, "svg", *more)
    assert run.returncode == 0, run.stderr
    return run.stdout


def points(picture: str) -> list[float]:
    """Of every text of an SVG whose unit is one point."""
    return [float(size) for size in re.findall(r'font-size="([\d.]+)', picture)]


def words(picture: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)", picture)


@pytest.mark.parametrize(
    ("width", "size"), [("3.3in", 237.6), ("6.9in", 496.8), ("8.5cm", 240.945), ("90mm", 255.118)]
)
@pytest.mark.slow
def test_a_picture_has_the_requested_width_and_8_point_type(
    width: str, size: float, study: str
) -> None:
    picture = svg(study, "--width", width)
    box = re.search(r'width="([\d.]+)pt" height="[\d.]+pt" viewBox="(\S+) 0 (\S+) ', picture)
    assert box is not None
    assert float(box[1]) == float(box[3]) == pytest.approx(size, abs=0.01)
    assert float(box[2]) <= 0, "what is drawn is no wider than the picture"
    assert 8 == min(points(picture)) <= max(points(picture)) < 12


def test_the_type_has_the_requested_size(study: str) -> None:
    assert min(points(svg(study, "--width", "6.9in", "--font-size", "10"))) == 10
    # without a unit of print there are 96 pixels an inch
    assert min(points(svg(study, "--font-size", "9"))) == 12


@pytest.mark.slow
def test_a_pdf_holds_its_fonts_and_a_png_the_pixels_of_print(study: str) -> None:
    for format in ("pdf", "png"):
        command = ("table", study, *PICTURE, format, "--width", "3.3in", "-o", f"a.{format}")
        assert holdfast(*command).returncode == 0
    pdf = Path("a.pdf").read_bytes()
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+) ", pdf)
    assert box is not None
    assert float(box[1]) == pytest.approx(237.6, abs=0.05)
    assert b"/FontFile" in pdf
    assert int.from_bytes(Path("a.png").read_bytes()[16:20]) == 990


def test_without_a_title_a_picture_still_says_simulated(study: str) -> None:
    with_title, bare = words(svg(study)), words(svg(study, "--no-title"))
    assert len(bare) < len(with_title)
    assert "SIMULATED" in bare


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("l.toml", '[techniques]\nrag-style = "Retrieved"\n[models]\n'
                   '"simulated/claude-sonnet-4" = "Model A"\n[families]\ncontext = "Texts"'),
        ("l.csv", "id,words\nrag-style,Retrieved\nsimulated/claude-sonnet-4,Model A\n"
                  "context,Texts\n"),
    ],
)  # fmt: skip
def test_ids_become_words(name: str, text: str, study: str) -> None:
    Path(name).write_text(text)
    before, after = svg(study), svg(study, "--labels", name)
    assert {"Retrieved", "Model A", "average of Texts"} <= set(words(after))
    assert {"RAG style", "double check", "authority prior"} <= set(words(before))
    assert not {"RAG style", "rag-style"} & set(words(after))
    # a mark whose place is renamed without its axis stands at the top
    places = [re.findall(r"role-mark.*?</g>", picture) for picture in (before, after)]
    rows = [set(re.findall(r"translate\([\d.]+,([\d.]+)\)", "".join(group))) for group in places]
    assert [len(group) for group in places] == [len(places[0])] * 2
    assert len(rows[0]) == len(rows[1])


@pytest.mark.slow
def test_python_and_the_command_draw_the_same_chart(study: str) -> None:
    Path("l.toml").write_text('rag-style = "Retrieved"')
    chart = figure(study, width="3.3in", title=False, labels="l.toml")
    picture = vl_convert.vegalite_to_svg(json.dumps(chart.to_dict(validate=False)))
    options = ("--width", "3.3in", "--no-title", "--labels", "l.toml")
    assert words(picture) == words(svg(study, *options))
