import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_hex
from PIL import Image

from medlink.errors import EncoderError, LimitError, UnknownValueError
from medlink.metrics import reliability
from training.plots import (
    MOST_CONCEPTS,
    Panel,
    Reliability,
    calibration_figure,
    flatten,
    names_figure,
    save,
    smooth,
    together,
    training_figure,
)
from training.run import Step


def clouds(concepts: int, names: int, *, spread: float = 0.1, seed: int = 0) -> tuple[np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    centres = np.repeat(rng.normal(size=(concepts, 16)), names, axis=0)
    points = centres + spread * rng.normal(size=centres.shape)
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    return unit.astype(np.float32), [f"concept {number}" for number in range(concepts) for _ in range(names)]


def steps(count: int, *, every: int = 2) -> list[Step]:
    return [
        Step(n, 0, 1 / n, 0.5, 0.01 * n, 1e-5, 100.0, 50.0 + n if n % every == 0 else None) for n in range(1, count + 1)
    ]


def test_every_name_is_a_point_in_every_panel_and_a_concept_looks_the_same_in_both():
    vectors, concepts = clouds(10, 4)

    figure = names_figure([Panel("before", vectors), Panel("after", vectors[:, ::-1])], concepts)

    looks = []
    for axis in figure.axes:
        assert [len(points.get_offsets()) for points in axis.collections] == [4] * 10
        looks.append([(to_hex(p.get_facecolor()[0]), p.get_paths()[0].vertices.tobytes()) for p in axis.collections])
    assert looks[0] == looks[1]
    assert len(set(looks[0])) == 10
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(dict.fromkeys(concepts))


def test_no_two_concepts_look_the_same_however_many_there_are():
    vectors, concepts = clouds(MOST_CONCEPTS, 1)

    (axis,) = names_figure([Panel("all", vectors)], concepts).axes

    looks = {(to_hex(p.get_facecolor()[0]), p.get_paths()[0].vertices.tobytes()) for p in axis.collections}
    assert len(looks) == MOST_CONCEPTS


def test_names_of_one_concept_come_to_lie_together_in_the_plane():
    vectors, _ = clouds(4, 8)
    owners = np.repeat(np.arange(4), 8)

    points = flatten(vectors, "tsne", 0)

    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    assert points.shape == (32, 2)
    assert (owners[distances.argmin(axis=1)] == owners).all()


def test_the_title_says_how_many_names_have_their_own_concept_nearest():
    vectors = np.eye(6, dtype=np.float32)[[0, 0, 1, 1, 2, 3]]
    vectors[5] = [0, 0, 0.6, 0.8, 0, 0]
    concepts = ["a", "a", "b", "b", "c", "d"]

    figure = names_figure([Panel("before", vectors)], concepts)

    assert together(vectors, np.array([0, 0, 1, 1, 2, 3])) == pytest.approx(4 / 6)
    assert figure.axes[0].get_title() == "before\nnearest name is of the same concept: 67%"


@pytest.mark.parametrize("suffix", [".svg", ".png", ".PNG"])
def test_a_picture_is_of_the_type_of_its_name_and_the_same_every_time(tmp_path, suffix):
    vectors, concepts = clouds(3, 4)
    files = [tmp_path / f"{name}{suffix}" for name in ("first", "second")]

    for file in files:
        save(names_figure([Panel("before", vectors)], concepts), file)

    first, second = (file.read_bytes() for file in files)
    assert first == second
    if suffix == ".svg":
        assert ElementTree.fromstring(first).tag == "{http://www.w3.org/2000/svg}svg"
        assert b"dc:date" not in first
    else:
        with Image.open(files[0]) as image:
            assert image.format == "PNG"
            assert image.width > 500


def test_a_label_is_text_in_the_svg_whatever_signs_it_holds(tmp_path):
    vectors, _ = clouds(4, 1)
    labels = ["costs $5 and $6 <b>", "_underscored", "a" * 60, "β-thalassaemia"]

    save(names_figure([Panel("before", vectors)], labels), tmp_path / "x.svg")

    told = {"".join(node.itertext()).strip() for node in ElementTree.parse(tmp_path / "x.svg").iter()}
    assert {"costs $5 and $6 <b>", "_underscored", "a" * 39 + "…", "β-thalassaemia"} <= told


def test_another_file_type_is_refused_with_those_that_work(tmp_path):
    vectors, concepts = clouds(3, 4)

    with pytest.raises(UnknownValueError, match=r"'\.pdf'; valid: \.png, \.svg"):
        save(names_figure([Panel("before", vectors)], concepts), tmp_path / "x.pdf")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("concepts", [MOST_CONCEPTS + 1, 3])
def test_too_many_concepts_or_too_few_names_are_refused(concepts):
    vectors, labels = clouds(concepts, 1)

    with pytest.raises(LimitError, match="a picture"):
        names_figure([Panel("before", vectors)], labels)


def test_an_unknown_method_lists_the_valid_ones():
    vectors, concepts = clouds(3, 4)

    with pytest.raises(UnknownValueError, match="valid: tsne, umap"):
        names_figure([Panel("before", vectors)], concepts, method="pca")


def test_umap_says_which_package_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    vectors, _ = clouds(3, 4)

    with pytest.raises(EncoderError, match="pip install umap-learn"):
        flatten(vectors, "umap", 0)


def test_curves_of_several_runs_lie_over_each_other():
    figure = training_figure({"first": steps(100), "_second": steps(60, every=30)})

    loss, positives, negatives, dev = figure.axes
    for axis in (loss, positives, negatives):
        assert [len(line.get_xdata()) for line in axis.lines] == [100, 100, 60, 60]
    assert loss.lines[0].get_ydata()[:3].tolist() == [1, 1 / 2, 1 / 3]
    assert positives.lines[0].get_ydata()[0] == 50
    assert negatives.lines[2].get_ydata()[-1] == pytest.approx(60)
    assert dev.lines[1].get_xydata().tolist() == [[30, 80], [60, 110]]
    assert [text.get_text().strip() for text in figure.legends[0].get_texts()] == ["first", "_second"]


def test_a_run_without_dev_names_is_drawn_too(tmp_path):
    save(training_figure({"first": steps(3, every=9)}), tmp_path / "x.png")

    assert (tmp_path / "x.png").stat().st_size > 1000


def test_smoothing_is_a_running_mean():
    values = np.random.default_rng(0).normal(size=500)

    found = smooth(values.tolist())

    assert found == pytest.approx([values[max(0, place - 9) : place + 1].mean() for place in range(500)])


@pytest.mark.parametrize(("count", "shown"), [(1, 1), (3, 3), (4, 6)])
def test_every_corpus_has_a_panel_with_its_curves_beside_the_diagonal(count, shown):
    bins = reliability([0.125, 0.375, 0.875, 0.875], [False, True, True, True], bins=2)
    curves = [Reliability("0 % hidden", bins), Reliability("30 % hidden", bins[:1])]

    figure = calibration_figure({f"corpus {number}": curves for number in range(count)})

    assert len(figure.axes) == shown
    panels = [axis for axis in figure.axes if axis.get_visible()]
    assert [axis.get_title() for axis in panels] == [f"corpus {number}" for number in range(count)]
    for axis in panels:
        diagonal, whole, hidden = axis.lines
        assert diagonal.get_xydata().tolist() == [[0, 0], [1, 1]]
        assert whole.get_xydata().tolist() == [[0.25, 0.5], [0.875, 1.0]]
        assert len(hidden.get_xdata()) == 1
        assert [text.get_text() for text in axis.get_legend().get_texts()] == ["0 % hidden", "30 % hidden"]


def test_a_picture_of_names_loads_neither_torch_nor_a_window_toolkit():
    code = "import sys, training.plots; sys.exit(bool({'torch', 'matplotlib.pyplot'} & set(sys.modules)))"

    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
