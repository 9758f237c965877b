"""Two clinics as an engineer finds them: good tables, models, and much that went wrong."""

import gzip
import json
import pickle
import shutil

import numpy as np
import pyarrow
import pyarrow.parquet

HEADER = "visit,age,dose,ward,ill,cost"


def rows_of(rng, centre, n):
    """Rows as lists of texts, in the order of HEADER; four in ten have no ward."""
    age, dose = rng.normal(50 + 5 * centre, 9, n).round(1), rng.normal(size=n).round(3)
    ward = np.where(rng.random(n) < 0.3, "day", np.where(rng.random(n) < 0.5, "night", ""))
    ill = np.where(np.sin(age) + centre * dose / 3 + 0.3 * rng.normal(size=n) > 0, "yes", "no")
    cost = (age + 5 * dose + centre + rng.normal(size=n)).round(2)
    return [
        [f"v-{i:03}", *map(str, row)]
        for i, row in enumerate(zip(age, dose, ward, ill, cost, strict=True))
    ]


def write(path, rows, header=HEADER, separator=",", encoding="utf-8"):
    """A table of texts."""
    lines = [header.replace(",", separator), *(separator.join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding=encoding)


def changed(rows, column, value, which=(2,)):
    """The rows with another value in a column, of the rows that are named or of all."""
    place = HEADER.split(",").index(column)
    return [
        [*row[:place], value, *row[place + 1 :]] if which is None or i in which else row
        for i, row in enumerate(rows)
    ]


def without(rows, column):
    """The rows and the header without a column."""
    place = HEADER.split(",").index(column)
    return [row[:place] + row[place + 1 :] for row in rows], HEADER.replace(
        f"{column},", ""
    ).replace(f",{column}", "")


def good_tables(folder, rng):
    """Tables to train on, to hold out and to test by, and traffic without labels."""
    for name, centre in (("north", -2.0), ("south", 2.0)):
        for part, n in (("train", 120), ("held", 60), ("test", 40)):
            write(folder / f"{name}_{part}.csv", rows_of(rng, centre, n))
    write(
        folder / "traffic.csv",
        [row[:4] for row in rows_of(rng, -2.0, 40)],
        HEADER.removesuffix(",ill,cost"),
    )


def spoilt_tables(folder, rng):
    """What people have in their folders, too."""
    rows = rows_of(rng, -2.0, 40)
    for name, column, value in (
        ("gap_label", "ill", ""),
        ("infinite", "age", "inf"),
        ("thousands", "cost", '"1,000"'),
        ("word_in_age", "age", "old"),
        ("gap_age", "age", ""),
        ("bad_label", "ill", "maybe"),
        ("gap_cost", "cost", "NaN"),
    ):
        write(folder / f"{name}.csv", changed(rows, column, value))
    write(folder / "one_class.csv", changed(rows, "ill", "no", None))
    write(folder / "capitals.csv", [[*row[:4], row[4].capitalize(), row[5]] for row in rows])
    write(folder / "dates.csv", changed(rows, "dose", "2024-05-01", None))
    write(folder / "no_dose.csv", *without(rows, "dose"))
    write(folder / "Dose.csv", rows, HEADER.replace("dose", "Dose"))
    write(folder / "twice.csv", rows, HEADER.replace("dose", "age"))
    write(folder / "ragged.csv", [row if i != 3 else row[:4] for i, row in enumerate(rows)])
    write(folder / "semicolons.csv", rows, separator=";")
    write(folder / "latin.csv", changed(rows, "ward", "Süd"), encoding="latin-1")
    write(folder / "utf16.csv", rows, encoding="utf-16")
    write(folder / "header_only.csv", [])
    write(folder / "three_rows.csv", rows[:3])
    write(folder / "no_header.csv", rows[1:], ",".join(rows[0]))
    (folder / "empty.csv").write_text("")


def spoilt_files(folder):
    """Files of another kind than their names say, or that anymix does not read."""
    (folder / "book.xlsx").write_bytes(b"PK\x03\x04 a workbook")
    (folder / "fake.csv.gz").write_text(HEADER + "\n")
    (folder / "fake.parquet").write_text(HEADER + "\n")
    (folder / "cut.csv.gz").write_bytes(gzip.compress((folder / "traffic.csv").read_bytes())[:-20])
    (folder / "model.pkl").write_bytes(pickle.dumps({"coef": [1.0, 2.0]}))
    (folder / "notes.md").write_text("# Mine\n")
    (folder / "mine.csv").write_text("a,b\n1,2\n")
    (folder / "page.html").write_text("<p>mine</p>\n")
    (folder / "results").mkdir()
    (folder / "results" / "keep.txt").write_text("mine\n")
    lists = pyarrow.table({"age": [[1.0], [2.0]], "dose": [1.0, 2.0], "ward": ["day", "day"]})
    pyarrow.parquet.write_table(lists, folder / "lists.parquet")


def copies(folder):
    """A model of a version to come, one that lost a file, and a source with another's graph."""
    for name in ("later", "lost"):
        shutil.copytree(folder / "model", folder / name)
    told = json.loads((folder / "later" / "model.json").read_text())
    (folder / "later" / "model.json").write_text(json.dumps(told | {"schema": 99}))
    for tables in (folder / "lost").glob("tables*"):
        tables.unlink()
    shutil.copytree(folder / "north", folder / "exchanged")
    shutil.copy(folder / "south" / "predictor.onnx", folder / "exchanged")


def commands():
    """Yield what makes the models: labels from words and gaps, and costs from numbers."""
    labels = "--target ill --id visit --drop cost"
    for name in ("north", "south"):
        rows = f"{name}_train.csv --name {name}"
        yield f"reference summary {rows} {labels} --out {name}.summary"
        yield (
            f"source pack {name}_cost --name {name} --rows {name}_train.csv --target cost "
            "--features age,dose --task regression"
        )
    yield "reference join north.summary south.summary --out reference.json"
    for name in ("north", "south"):
        yield (
            f"source pack {name} --name {name} --rows {name}_train.csv {labels} "
            "--task classification --reference reference.json"
        )
    held = "--held-out north=north_held.csv south=south_held.csv"
    yield f"fit north south {held} --target ill --out model"
    yield f"fit north_cost south_cost {held} --target cost --out costs"
    yield "export costs costs.onnx"


def build(folder, run):
    """Write all tables, run the commands, and spoil copies of what they made."""
    rng = np.random.default_rng(0)
    good_tables(folder, rng)
    spoilt_tables(folder, rng)
    spoilt_files(folder)
    for command in commands():
        run(command)
    copies(folder)
