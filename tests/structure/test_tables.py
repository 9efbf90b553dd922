"""Tables as files, frames and arrays give the same numbers, and what cannot be used is named in one sentence."""

from __future__ import annotations

import builtins
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from theodolite.errors import BadInput
from theodolite.structure.data.coding import Coding, learn_coding
from theodolite.structure.data.tables import LEAST_ROWS, Samples, Table, read_columns, read_table

ROWS = 60


def read_samples(*data: Any, **options: Any) -> Samples:
    table = read_table(*data, **options)
    return table.coded(learn_coding(table.columns, table.y))


@pytest.fixture
def frame() -> pd.DataFrame:
    draw = np.random.default_rng(0)
    a, b = draw.normal(size=(2, ROWS))
    return pd.DataFrame({"a": a, "b of it": b, "y": a * b, "c": draw.random(ROWS) > 0.5})


def written(folder: Path, text: str, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def lines(*changes: tuple[int, str], header: str = "a,b,y") -> str:
    """A good file with some lines (counted from 1, the header being line 1) replaced."""
    body = [header, *(f"{i},{i * i % 7},{i * i % 11}" for i in range(ROWS))]
    for number, text in changes:
        body[number - 1] = text
    return "\n".join(body) + "\n"


def test_every_way_to_give_a_table_reads_the_same_numbers(frame: pd.DataFrame, tmp_path: Path) -> None:
    expected = read_samples(frame, "y")
    assert expected.variables == ("a", "b of it", "c")
    assert np.array_equal(expected.x, frame[["a", "b of it", "c"]].to_numpy(dtype=float))
    assert np.array_equal(expected.y, frame["y"].to_numpy())
    frame.to_csv(tmp_path / "plain.csv", index=False)
    frame.to_csv(tmp_path / "numbered.csv")  # with pandas' nameless column of row numbers
    frame.to_csv(tmp_path / "semicolon.csv", index=False, sep=";")
    frame.to_csv(tmp_path / "tabs.tsv", index=False, sep="\t")
    frame.to_csv(tmp_path / "zipped.csv.gz", index=False)
    frame.to_csv(tmp_path / "mark.CSV", index=False, encoding="utf-8-sig", lineterminator="\r\n")
    frame.to_parquet(tmp_path / "columns.parquet")
    names = list(frame.columns)
    given: list[tuple[Any, Any, Any]] = [(path, "y", None) for path in sorted(tmp_path.iterdir())]
    given += [(frame.to_numpy(dtype=float), "y", names), (frame.to_numpy(dtype=float).tolist(), 2, names)]
    given += [((frame.drop(columns="y"), frame["y"]), None, None), (frame.astype(object), 2, None)]
    assert len(given) == 11
    for data, target, variables in given:
        found = read_samples(data, target, variables=variables)
        assert found.variables == expected.variables
        assert found.target == "y"
        np.testing.assert_array_equal(found.x, expected.x)
        np.testing.assert_array_equal(found.y, expected.y)


def test_text_files_need_no_other_library(frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.split(".")[0] in ("pandas", "pyarrow"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    assert read_samples(tmp_path / "a.csv", "y").x.shape == (ROWS, 3)
    with pytest.raises(BadInput, match=r"a\.parquet' needs pyarrow.*\.csv"):
        read_samples(tmp_path / "a.parquet", "y")


def test_arrays_get_names_and_tensors_are_arrays() -> None:
    import torch

    x = torch.arange(3.0 * ROWS, requires_grad=True).reshape(ROWS, 3) ** 2
    found = read_samples((x, (x[:, :1] * x[:, 1:2])))
    assert found.variables == ("x1", "x2", "x3")
    assert found.target == "y"
    assert read_samples((x, x.sum(1)), "energy").target == "energy"
    assert read_samples((x, x.sum(1)), variables=["x", "y", "z"]).target == "y_"
    assert read_samples(x, -1).target == "x3"


def test_a_file_without_names_is_read_when_it_is_said_so(tmp_path: Path) -> None:
    path = written(tmp_path, "".join(f"{i},{i * i % 7},{i % 5}\n" for i in range(ROWS)))
    with pytest.raises(BadInput, match=r"first line of .* holds numbers.*--no-header"):
        read_samples(path, "x3")
    found = read_samples(path, "x3", header=False)
    assert found.x.shape == (ROWS, 2)
    assert found.y[1] == 1


def test_constant_columns_and_copies_are_left_out_with_a_note(frame: pd.DataFrame) -> None:
    found = read_samples(frame.assign(d=3.0, e=frame["a"], f=-frame["a"]), "y")
    assert found.variables == ("a", "b of it", "c")
    assert found.notes == (
        "'d' is 3 in every row and was left out.",
        "'e' is an exact copy of 'a' and was left out.",
        "'f' is a linear function of 'a' and was left out.",
    )
    other = frame.assign(
        near=frame["a"] + 1e-5 * frame["b of it"], square=frame["a"] ** 2, fahrenheit=32 + 1.8 * frame["a"]
    )
    found = read_samples(other, "y", drop=["a"])
    assert found.variables == ("b of it", "c", "near", "square", "fahrenheit")
    (note,) = found.notes
    assert note.startswith("'near' and 'fahrenheit' go together (correlation above 0.99)")
    assert "--drop fahrenheit" in note


def test_a_column_on_a_line_with_the_target_is_noted(frame: pd.DataFrame) -> None:
    found = read_samples(frame.assign(leak=7 - 0.5 * frame["y"]), "y")
    assert "leak" in found.variables
    assert len(found.notes) == 1
    assert found.notes[0].startswith("'leak' alone gives the target by a straight line")


def test_decimal_commas_are_read_where_nothing_else_can_be_meant(frame: pd.DataFrame, tmp_path: Path) -> None:
    plain = frame.drop(columns="c")
    expected = read_samples(plain, "y")
    plain.to_csv(tmp_path / "a.csv", index=False, sep=";", decimal=",")
    plain.to_csv(tmp_path / "b.tsv", index=False, sep="\t", decimal=",")
    plain.to_csv(tmp_path / "tabs.csv", sep="\t")  # with a name that is empty above the row numbers
    for name in ("a.csv", "b.tsv", "tabs.csv"):
        np.testing.assert_array_equal(read_samples(tmp_path / name, "y").x, expected.x)
    plain.to_csv(tmp_path / "c.csv", index=False, header=False, sep=";", decimal=",")
    np.testing.assert_array_equal(read_samples(tmp_path / "c.csv", "x3", header=False).y, expected.y)
    rows = "".join(f"{i};1,{100 + i}\n" for i in range(ROWS))  # a thousand and something, or one and a little?
    with pytest.raises(BadInput, match=r"not numeric .line 2 has '1,100'"):
        read_samples(written(tmp_path, "a;y\n" + rows), "y")


def test_a_dropped_column_may_hold_anything(frame: pd.DataFrame) -> None:
    found = read_samples(frame.assign(city="Ulm", gap=np.nan), "y", drop=["city", "gap"])
    assert found.variables == ("a", "b of it", "c")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("a,b,y\n", "no rows"),
        (lines((9, "1,2")), "line 9 of .* has 2 entries where 3 are named"),
        (lines((9, "1,2,3,4")), "line 9 of .* has 4 entries"),
        (lines(header="a,a,y"), "two columns are called 'a'"),
        (lines(header="a,b,Y"), r"no column is called 'y'.*a, b, Y"),
        (lines((9, "1,2,many")), "target 'y' is not numeric .line 9 has 'many'"),
        (lines((9, "1,2,")), "target 'y' has no value in line 9: remove"),
        (lines((9, "1,Ulm,3"), (13, "inf,1,3")), "'a' has an infinite value in line 13; 'b' has text"),
        (lines((9, "1,Ulm,3")), "'b' has text such as 'Ulm' in line 9 among numbers: .*--drop b"),
        (lines((9, "1,2024-01-05,3")), "text such as '2024-01-05'"),
        (lines((9, "1e200,2,3")), r"'a' has 1e\+200 in line 9"),
        (lines((9, "1,2,3e200")), r"target 'y' has 3e\+200 in line 9: bring it below 1e\+30"),
        (lines((9, "1,20_01,3")), "'b' has text such as '20_01'"),
        ("a,y\n" + "1e-40,3\n2e-40,4\n" * ROWS, "'a' varies by only 1e-40"),
        ("a,b,y\n" + "1,2,3\n2,3,4\n" * 20, f"40 rows are too few.*at least {LEAST_ROWS}"),
        ("a,y\n" + "1,3\n2,3\n" * ROWS, "target 'y' is 3 in every row"),
        ("a,y\n" + "1,3\n1,4\n" * ROWS, "every column beside the target is constant"),
        ("a,y\n" + "3,3\n4,4\n" * ROWS, "'a' is an exact copy of the target 'y'"),
        ("y\n" + "3\n4\n" * ROWS, "no column beside the target"),
        ('a,y\n"1,3\n' + "1,4\n" * ROWS, "has 1 entries where 2|breaks off"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=told) as raised:
        read_samples(written(tmp_path, text), "y")
    assert "\n" not in str(raised.value)


def test_columns_at_fault_are_all_named_up_to_five(frame: pd.DataFrame) -> None:
    with pytest.raises(BadInput) as raised:
        read_samples(frame.assign(**{f"t{i}": np.inf for i in range(7)}), "y")
    assert all(f"'t{i}'" in str(raised.value) for i in range(5))
    assert "2 more columns likewise" in str(raised.value)


def test_what_is_no_table_is_refused(frame: pd.DataFrame, tmp_path: Path) -> None:
    damaged = written(tmp_path, "no parquet", "a.parquet")
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(lines().encode())[:-9])
    latin = tmp_path / "latin.csv"
    latin.write_bytes("größe,y\n1,2\n".encode("latin-1"))
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (tmp_path / "none.csv", {}, "there is no file"),
        (tmp_path / "a.xlsx", {}, r"\.csv, \.tsv"),
        (tmp_path, {}, r"\.csv, \.tsv"),
        (damaged, {}, "no Parquet file"),
        (damaged, {"header": False}, "names its own columns"),
        (packed, {}, "cannot be read"),
        (latin, {}, "cannot be read.*UTF-8"),
        (frame, {"target": None}, "--target.*columns are a, b of it, y, c"),
        (frame, {"target": 9}, "no column 9"),
        (frame, {"target": ["y", "a"]}, "2 targets are explained one by one"),
        (frame, {"target": "y,a"}, "2 targets are explained one by one: give one of y, a"),
        (frame, {"drop": ["d"]}, "no column is called 'd'"),
        (frame, {"drop": ["y"]}, "'y' cannot be dropped"),
        (frame.iloc[:0], {}, "data frame is empty"),
        (frame.assign(y=list("abc") * 20), {}, "not numeric and has 3 classes"),
        (frame, {"categories": ["d"]}, "no column is called 'd'"),
        (frame.assign(y=["a", None] * 30), {}, "'y' has no value in row 1"),
        (pd.DataFrame(np.ones((60, 2)), columns=["y", "y"]), {}, "two columns are called 'y'"),
        (frame, {"variables": ["a", "b", "c"]}, "names of their own"),
        (np.ones(60), {}, r"shape \(60,\) is no table"),
        (3.0, {}, "a float is no table"),
        (np.ones((0, 3)), {}, "array is empty"),
        ([[1, 2], [3]], {}, "different lengths"),
        ((np.ones((60, 2)), np.ones(59)), {}, r"\(59,\) where x has 60 rows"),
        ((np.ones((60, 2)), np.ones(60)), {"variables": ["a"]}, "1 variables are named for 2 columns"),
    ]
    for data, options, told in cases:
        with pytest.raises(BadInput, match=told):
            read_samples(data, **{"target": "y", **options})


def mixed(rows: int = 200) -> pd.DataFrame:
    """Everything that a data scientist's table has, beside a target."""
    draw = np.random.default_rng(1)
    kind = draw.choice(["oak", "ash", "elm"], rows)
    height = draw.normal(10, 2, rows)
    return pd.DataFrame(
        {
            "kind": pd.Categorical(kind),
            "size": pd.Categorical(draw.choice(["s", "m", "l"], rows), ["s", "m", "l"], ordered=True),
            "alive": draw.choice(["no", "yes"], rows),
            "height": np.where(draw.random(rows) < 0.2, np.nan, height),
            "when": pd.Timestamp("2024-01-05") + pd.to_timedelta(np.arange(rows), unit="D"),
            "day": [f"2024-02-{1 + i % 28:02d}" for i in range(rows)],
            "code": draw.integers(1, 5, rows),
            "truth": draw.random(rows) > 0.5,
            "y": height + np.array([{"oak": 3.0, "ash": 0.0, "elm": -3.0}[k] for k in kind]),
        }
    )


def test_categories_dates_and_gaps_become_numbers_and_are_said_to(tmp_path: Path) -> None:
    frame = mixed()
    table = read_table(frame, "y", categories=["code"])
    coding = learn_coding(table.columns, table.y)
    found = table.coded(coding)
    assert found.variables == (*("kind", "size", "alive", "height", "height missing", "when", "day", "code", "truth"),)
    by_name = dict(zip(found.variables, found.x.T, strict=True))
    for word in ("oak", "ash", "elm"):
        rows = (frame["kind"] == word).to_numpy()
        np.testing.assert_allclose(by_name["kind"][rows], frame["y"][rows].mean())
    assert set(by_name["size"]) == {0.0, 1.0, 2.0}
    np.testing.assert_array_equal(by_name["alive"], frame["alive"] == "yes")
    np.testing.assert_array_equal(by_name["height missing"], frame["height"].isna())
    np.testing.assert_allclose(by_name["height"][frame["height"].isna()], frame["height"].median())
    assert by_name["when"][0] == (np.datetime64("2024-01-05") - np.datetime64("1970-01-01")).astype(int)
    assert len(set(by_name["day"])) == 28
    assert len(set(by_name["code"])) == 4
    notes = " ".join(found.notes)
    assert "'kind' is a category and enters as one number each: elm" in notes
    assert "'when' is a date and enters as days since 1970." in notes
    assert "missing values enter as the median, and 'height missing' says where" in notes
    assert np.isfinite(found.x).all()

    again = Coding.from_json(coding.to_json())
    np.testing.assert_array_equal(again.encode(read_columns(frame[list(reversed(frame.columns))])), found.x)
    frame.to_csv(tmp_path / "t.csv", index=False)
    np.testing.assert_allclose(again.encode(read_columns(tmp_path / "t.csv")), found.x)
    strange = frame.assign(kind="yew", height="tall")
    with pytest.raises(BadInput, match="'height' has 'tall' in row 0, where the network learnt from numbers"):
        again.encode(read_columns(strange))
    with pytest.raises(BadInput, match="a variable is missing: no column is called 'alive'"):
        again.encode(read_columns(frame.drop(columns="alive")))
    unseen = again.encode(read_columns(strange.assign(height=1.0)))[:, 0]
    np.testing.assert_allclose(unseen, frame["y"].mean())


def test_categories_that_tell_nothing_are_left_out_with_a_note() -> None:
    frame = pd.DataFrame({"a": np.arange(10_000.0) % 97, "id": [f"id {i}" for i in range(10_000)], "one": "Ulm"})
    table = read_table(frame.assign(y=frame["a"] ** 2, none=np.nan, empty=None), "y")
    assert [column.name for column in table.columns] == ["a"]
    assert table.notes == (
        "'id' has 10,000 different entries in 10,000 rows, too few rows each, and was left out.",
        "'one' is 'Ulm' in every row and was left out.",
        "'none' has no values and was left out.",
        "'empty' has no values and was left out.",
    )


def test_rare_categories_are_taken_together_and_no_mean_is_of_few_rows() -> None:
    draw = np.random.default_rng(0)
    words = np.array(["a"] * 40 + ["b"] * 40 + [f"rare {i}" for i in range(20)])
    y = draw.normal(size=100)
    (column,) = read_columns(pd.DataFrame({"word": words}))
    (coded,) = learn_coding([column], y).columns
    assert set(coded.categories) == {"a", "b"}
    assert coded.other == pytest.approx(y[80:].mean())
    assert coded.gap == coded.other


def test_training_rows_are_not_told_their_own_target_by_the_mean_of_a_small_category() -> None:
    draw = np.random.default_rng(0)
    noise = pd.DataFrame({"word": [f"w{i % 40}" for i in range(1000)], "y": draw.normal(size=1000)})
    table = read_table(noise, "y")
    coding = learn_coding(table.columns, table.y)
    told = [np.corrcoef(table.coded(coding, learnt=learnt).x[:, 0], table.y)[0, 1] for learnt in (False, True)]
    assert told[0] > 0.15, "the mean of 25 rows knows each of them"
    assert told[1] < 0.05
    real = noise.assign(y=noise["y"] + noise["word"].str[1:].astype(float))
    table = read_table(real, "y")
    coding = learn_coding(table.columns, table.y)
    assert np.corrcoef(table.coded(coding, learnt=True).x[:, 0], table.y)[0, 1] > 0.98


def test_amounts_as_people_write_them_are_refused_not_taken_for_words() -> None:
    frame = mixed().assign(price=[f"${1 + i},{100 + i}" for i in range(200)])
    with pytest.raises(BadInput, match=r"'price' has text such as '\$1,100' in row 0"):
        read_table(frame, "y")


def test_targets_of_two_values_classes_and_counts_are_fitted_and_noted() -> None:
    frame = mixed()
    truth = frame.pop("truth")
    for y, told, values in [
        (np.where(truth, "yes", "no"), "is 1 for 'yes', else 0", {0.0, 1.0}),
        (truth.astype(int) + 1, "has two values, 1 and 2", {1.0, 2.0}),
        (np.arange(200) % 7, "looks like counts", set(range(7))),
    ]:
        table: Table = read_table(frame.assign(y=y), "y")
        assert set(table.y) == values
        assert any(told in note for note in table.notes)


def test_of_many_rows_some_are_drawn_and_faults_are_looked_for_in_all() -> None:
    x = np.random.default_rng(0).uniform(size=(300, 3))
    x[:, 2] = 3 * x[:, 1] + 1
    drawn = np.arange(0, 300, 3)
    table = read_table((x, x[:, 0] ** 2), draw=lambda count: drawn if count == 300 else None)
    np.testing.assert_array_equal(table.y, x[drawn, 0] ** 2)
    np.testing.assert_array_equal(table.columns[0].numbers, x[drawn, 0])
    assert any("100 of 300 rows were drawn" in note for note in table.notes)
    assert any("'x3' is a linear function of 'x2'" in note for note in table.notes)
    x[1, 0] = np.inf
    with pytest.raises(BadInput, match="an infinite value in row 1"):
        read_table((x, x[:, 1]), draw=lambda count: drawn)
