"""Results are read back: for a front page, for documents that quote them, for a notebook."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memoryspace.bench import catalogue, run_experiment
from memoryspace.bench.command import main
from memoryspace.bench.report.drawing import draw
from memoryspace.bench.report.front import write_front
from memoryspace.bench.report.quoting import MARK, quote, quoted, selected
from memoryspace.bench.report.reading import Redrawn, read_findings, remake
from memoryspace.bench.report.tables import claims, grids
from memoryspace.errors import CorruptData, InvalidInput

from bench_toy import TOY, ToyOptions

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "notebooks" / "experiments.ipynb"
DOCUMENT = ROOT / "docs" / "experiments.md"


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the results of the toy, which is in the catalogue here."""
    known = catalogue.experiment
    monkeypatch.setattr(catalogue, "MODULES", {"toy": "bench_toy", **catalogue.MODULES})
    monkeypatch.setattr(catalogue, "experiment", lambda name: TOY if name == "toy" else known(name))
    run_experiment(TOY, ToyOptions(), out=tmp_path)
    return tmp_path


# -- reading back --------------------------------------------------------------------------------


def test_what_is_read_back_says_and_draws_the_same(results: Path) -> None:
    fresh = run_experiment(TOY, ToyOptions(), out=results).findings
    found = read_findings(results, "toy")
    assert list(grids(found)) == list(grids(fresh))
    assert claims(found) == claims(fresh)
    pictures = draw(found)
    assert isinstance(pictures, list)
    assert pictures == draw(fresh)
    assert pictures[0].svg == (results / "toy" / f"{pictures[0].name}.svg").read_text("utf-8")


def test_missing_and_malformed_results_are_said_clearly(results: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no results of tiered at .*; run memoryspace"):
        read_findings(results, "tiered")
    (results / "toy" / "toy.json").write_text('{"groups": [{}]}')
    with pytest.raises(CorruptData, match="lacks 'timed'"):
        read_findings(results, "toy")
    (results / "toy" / "toy.json").write_text("{")
    with pytest.raises(CorruptData, match="malformed"):
        read_findings(results, "toy")


def test_a_notebook_shows_claims_tables_and_plots(results: Path) -> None:
    shown = Redrawn(read_findings(results, "toy"))._repr_html_()
    assert shown.count("<svg") == 6
    assert "All &amp; everything" in shown
    assert "✔" in shown


# -- the front page ------------------------------------------------------------------------------


def test_the_front_page_leads_to_every_report(results: Path) -> None:
    (results / "other").mkdir()
    (results / "other" / "unrelated.json").write_text("{}")
    page = write_front(results).read_text("utf-8")
    assert '<a href="toy/toy.html">toy</a>' in page
    assert "what &lt;toys&gt; are worth" in page
    assert "1 of 2" in page, "a claim that was not measured counts for neither"
    assert "generated sample" in page
    assert "unrelated" not in page
    for loading in ("<script", "src=", "@import", 'href="http'):
        assert loading not in page


def test_every_run_brings_the_front_page_up_to_date(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--quick", "--out", str(tmp_path), "--seeds", "1", "--settings", "seed",
             "--limit", "40", "--paging-strategy", "lru"]  # fmt: skip
    main(["tiered", *flags])
    assert str(tmp_path / "index.html") in capsys.readouterr().out
    assert "tiered/tiered.html" in (tmp_path / "index.html").read_text("utf-8")


# -- quoting -------------------------------------------------------------------------------------


def test_a_document_quotes_results_by_name(results: Path) -> None:
    document = results / "docs" / "text.md"
    document.parent.mkdir()
    before = (
        "Text.\n<!-- bench toy: Claims -->\nold\n<!-- end -->\nMore.\n"
        "<!-- bench toy: By age -->\n<!-- end -->\n<!-- bench toy: plot toy-bars -->\n<!-- end -->"
        "\n<!-- bench absent: Claims -->\nas it was\n<!-- end -->\n"
        "<!-- bench toy: Nothing -->\n<!-- end -->\n"
    )
    document.write_text(before)
    assert list(quote(document, results)) == [f"{document}: there are no results of absent yet"]
    after = document.read_text()
    assert ": holds" in after
    assert "\nold\n" not in after
    assert "as it was" in after
    assert "Not measured in the last run." in after
    assert "| kind | size | age | seeds |" in after
    assert "![toy-bars](../toy/toy-bars.svg)" in after
    assert after.startswith("Text.\n<!-- bench toy: Claims -->\n")
    assert quoted(after, results, document.parent) == after
    for wrong, match in (
        ("Nonsense", "no part 'Nonsense'"),
        ("plot nonsense", "no plot 'nonsense'"),
    ):
        with pytest.raises(InvalidInput, match=match):
            quoted(before.replace("Claims", wrong), results, document.parent)


def test_the_command_says_which_results_are_missing(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = results / "text.md"
    document.write_text("<!-- bench toy: Claims -->\n<!-- end --> <!-- bench beam: Claims -->\n"
                        "<!-- end -->")  # fmt: skip
    main(["quote", str(document), "--out", str(results)])
    assert "no results of beam yet" in capsys.readouterr().err
    assert ": holds" in document.read_text()
    with pytest.raises(SystemExit, match="no such document"):
        main(["quote", str(results / "absent.md")])


def test_every_quotation_is_of_something_that_there_is() -> None:
    text = DOCUMENT.read_text("utf-8")
    marks = [(mark[2], mark[3].split(" | ")[0]) for mark in MARK.finditer(text)]
    assert [
        name for name in catalogue.MODULES if f"results/bench/{name}/{name}.md" not in text
    ] == []
    assert ("all", "Claims that failed") in marks
    for name, title in marks:
        if name == "all":
            continue
        experiment = catalogue.experiment(name)
        titles = {table.title for table in experiment.tables}
        titles |= {f"plot {plot.name}" for plot in experiment.plots}
        if experiment.claims:
            titles.add("Claims")
        assert title in titles, f"{name} has no {title!r}; it has {sorted(titles)}"


def test_the_document_says_what_the_committed_results_say() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert quoted(text, ROOT / "results" / "bench", DOCUMENT.parent) == text
    assert len(text.split()) <= 1500  # a page that a person reads


def test_rows_and_columns_of_a_table_are_quoted() -> None:
    table = "| a | b | c |\n| --- | ---: | ---: |\n| x | 1 | 2 |\n| y | 3 | 4 |\n\nA note.\n"
    assert selected(table, []) == table
    assert selected(table, ["only a=y/z", "show a; c"]) == "| a | c |\n| --- | ---: |\n| y | 4 |\n"
    with pytest.raises(InvalidInput, match="no column 'd'"):
        selected(table, ["show d"])
    with pytest.raises(InvalidInput, match="no row"):
        selected(table, ["only a=z"])


def test_pages_are_made_again_of_the_figures_alone(results: Path) -> None:
    folder = results / "toy"
    before = (folder / "toy.md").read_text("utf-8")
    pictures = {path: path.read_text("utf-8") for path in folder.glob("*.svg")}
    kept = {"toy.json", *(path.name for path in pictures)}
    for path in folder.iterdir():
        if path.name not in kept:
            path.unlink()
    assert (folder / "toy.html") in set(remake(results, "toy"))
    assert (folder / "toy.md").read_text("utf-8") == before
    assert {path: path.read_text("utf-8") for path in folder.glob("*.svg")} == pictures


def test_committed_results_are_small_and_plain() -> None:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "results"], capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("this is no checkout")
    paths = [ROOT / line for line in listed.stdout.splitlines()]
    assert {path.suffix for path in paths} <= {".md", ".csv", ".json", ".svg"}
    assert sum(path.stat().st_size for path in paths if path.exists()) <= 5_000_000


# -- the notebook --------------------------------------------------------------------------------


def test_the_notebook_is_what_its_script_writes_and_holds_no_outputs(tmp_path: Path) -> None:
    script = [sys.executable, "-m", "memoryspace", "bench", "notebook", str(tmp_path / "new.ipynb")]
    subprocess.run(script, check=True, capture_output=True)
    assert (tmp_path / "new.ipynb").read_text("utf-8") == NOTEBOOK.read_text("utf-8"), (
        "run memoryspace bench notebook"
    )
    document = json.loads(NOTEBOOK.read_text("utf-8"))
    assert document["nbformat"] == 4
    assert all(cell["outputs"] == [] for cell in document["cells"] if "outputs" in cell)


def test_the_notebook_s_cells_run_on_the_results_of_a_quick_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = catalogue.experiment("tiered")
    options = replace(experiment.options.quick(), seeds=(1,), limit=60, fair_limit=60,
                      settings=("seed", "fair"),
                      paging_strategy=("lru",))  # type: ignore[call-arg]  # it has these  # fmt: skip
    run_experiment(experiment, options, out=tmp_path)
    monkeypatch.setenv("MEMORYSPACE_RESULTS", str(tmp_path))
    shown = dict(executed(json.loads(NOTEBOOK.read_text("utf-8"))))
    assert isinstance(shown['redrawn("tiered")'], Redrawn)
    assert shown['redrawn("tiered")']._repr_html_().count("<svg") == len(experiment.plots)
    assert "run memoryspace bench beam" in shown['redrawn("beam")']
    assert capsys.readouterr().out.startswith("tiered: ")


def executed(notebook: dict[str, Any]) -> list[tuple[str, Any]]:
    """Run the code of a notebook as Jupyter does; return what each cell shows."""
    names: dict[str, Any] = {}
    shown: list[tuple[str, Any]] = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        tree = ast.parse(source)
        last = tree.body[-1]
        if not isinstance(last, ast.Expr):
            exec(source, names)
            continue
        exec(compile(ast.Module(tree.body[:-1], []), "cell", "exec"), names)
        shown.append((source, eval(ast.unparse(last), names)))
    return shown
