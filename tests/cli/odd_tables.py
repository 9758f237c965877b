"""Tables as they come: sound ones that look odd, and those that a careless reader would change.

Each either is read exactly, or is refused in words that are named here.  All hold the columns a, b
and the label y, in the place of rows that `anymix` could otherwise use.
"""

from __future__ import annotations

import datetime
import gzip
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

N = 24
X = np.column_stack([np.arange(N) / 8 - 1.5, np.arange(N) % 5 / 2])
Y = np.where(np.arange(N) % 2, "yes", "no")
AT = 2  # the row whose cell is odd


@dataclass(frozen=True)
class OddTable:
    """How a table is made, and what becomes of it: `rows` if it is read, else `says`."""

    name: str
    suffix: str
    write: Callable[[Path], Any]
    rows: Any = None
    says: str = ""
    dear: bool = False

    def make(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"t{self.suffix}"
        self.write(path)
        return path


def odd_tables() -> list[OddTable]:
    """Return all of them, in an order that never changes."""
    made = [*_cells(), *_labels(), *_texts(), *_bytes(), *_places(), *_parquets(), *_npzs()]
    assert len({table.name for table in made}) == len(made), "names tell tables apart"
    return made


def _with(value: float) -> np.ndarray:
    rows = X.copy()
    rows[AT, 1] = value
    return rows


def _csv(cell: str | None = None, label: str | None = None, header: str = "a,b,y") -> str:
    rows = [[str(a), str(b), str(y)] for (a, b), y in zip(X.tolist(), Y, strict=True)]
    if cell is not None:
        rows[AT][1] = cell
    if label is not None:
        rows[AT][2] = label
    return "\n".join([header, *map(",".join, rows)]) + "\n"


READ = {
    "+5": 5.0, " 5 ": 5.0, "5.": 5.0, ".5": 0.5, "1E5": 1e5, "-0": 0.0, "5e-324": 5e-324,
    "1e-400": 0.0, '"5"': 5.0, "0005": 5.0, "9007199254740992": 2.0**53, "1e22": 1e22,
    "9007199254740993.5": 9007199254740994.0, "123456789012345680": 123456789012345680.0,
}  # fmt: skip
NO_NUMBER = (
    "0x10", "1_000", "１２", "٣", '"1,000"', "1 000", "1'000", "1.2.3", "--5", "5%", "$5", "True",
    "1/2", "1d3", "=1+1", "2020-01-01", "12:30", "[1]", "1+2j", '5"', "½",
    "\x1b[2J", "\u202e5", "#5", "5;6", "1e", "e5", ".", "-", "∞", "9x" * 90,
)  # fmt: skip
OTHER = {
    **dict.fromkeys(("None", "NA", "null", ""), "has no number"),
    "  ": "has no number", "nan": "has no number", "NaN": "has no number",
    "inf": "infinite", "-inf": "infinite", "infinity": "infinite", "1e999": "infinite",
    "9" * 400: "infinite", "9007199254740993": "more than 53 bits",
    "-123456789012345678901": "more than 53 bits", '"5': "a quote that is not closed",
    '"5"6': "cannot be cut into fields", "5\x00": "holds a NUL byte", "5\r6": "cannot be cut",
    "x" * 200_000: "is not a number", '"1,2"': "is not a number", "1,2": "4 fields where",
}  # fmt: skip


def _cells() -> Iterator[OddTable]:
    for cell, value in READ.items():
        yield _text(f"cell {cell!r}", _csv(cell), rows=_with(value))
    for cell in NO_NUMBER:
        yield _text(f"cell {cell!r:.20}", _csv(cell), says="which is not a number")
    for cell, says in OTHER.items():
        yield _text(f"cell {cell!r:.20}", _csv(cell), says=says)


def _labels() -> Iterator[OddTable]:
    """Labels that are read as they are; commands that know the labels refuse strange ones."""
    words = ["yes ", "YES", "01", "1", "=1", '=HYPERLINK("http://x")', "@SUM(1)", "+ve", "yes\x07"]
    for word in (*words, "\u202eyes", "x" * 200, "nan", "ÿ", "'", "a\tb"):
        quoted = '"' + word.replace('"', '""') + '"'
        yield _text(f"label {word!r:.30}", _csv(label=quoted), rows=X)
    for word in ("", " ", '""'):
        yield _text(f"label {word!r}", _csv(label=word), says="has no label")


def _text(name: str, text: str, **fate: Any) -> OddTable:
    return OddTable(name, ".csv", lambda path: path.write_bytes(text.encode()), **fate)


def _texts() -> Iterator[OddTable]:
    good, lines = _csv(), _csv().splitlines()
    extra = "\n".join([f"n,{lines[0]},n", *(f"7,{line},7" for line in lines[1:])]) + "\n"
    wide = ",".join(f"w{i}" for i in range(5000))
    for name, text in {
        "empty last lines": good + "\n\r\n",
        "the end mark of DOS": good + "\x1a",
        "carriage returns and line feeds": good.replace("\n", "\r\n"),
        "two carriage returns": good.replace("\n", "\r\r\n"),
        "no last line feed": good[:-1],
        "byte order mark": "\ufeff" + good,
        "quoted header": good.replace("a,b,y", '"a","b","y"'),
        "another column twice": extra,
        "5000 other columns": "\n".join(
            [f"{lines[0]},{wide}", *(line + ",0" * 5000 for line in lines[1:])]
        ),
        "quoted commas elsewhere": good.replace("no\n", '"no"\n').replace("a,b,y", 'a,b,"y"'),
        "semicolons": good.replace(",", ";"),
        "semicolons and decimal commas": good.replace(",", ";").replace(".", ","),
        "tabs": good.replace(",", "\t"),
        "bars": good.replace(",", "|"),
        "line break in quotes": good.replace("no\n", '"n\no"\n'),
        "another order": "\n".join(",".join(line.split(",")[::-1]) for line in lines),
    }.items():
        yield _text(name, text, rows=X)
    for name, text, says in (
        ("carriage returns alone", good.replace("\n", "\r"), "carriage returns alone"),
        ("empty", "", "has no header"),
        ("one line feed", "\n", "has no header"),
        ("blanks", "   \n", "has no column"),
        ("header alone", "a,b,y\n", "has no rows"),
        ("header alone, not ended", "a,b,y", "has no rows"),
        ("a column twice", good.replace("a,b,y", "a,a,y"), "columns named 'a'"),
        ("the column asked for twice", extra.replace("n,a,b,y,n", "a,a,b,y,b"), "columns named"),
        ("a column missing", good.replace("a,b,y", "a,c,y"), "has no column 'b'"),
        ("blanks between", good.replace(",", " "), "has no column"),
        ("blank after commas", good.replace("a,b,y", "a, b, y"), "has no column 'b'"),
        ("empty line", good.replace("\n", "\n\n", 3), "0 fields"),
        ("short row", good + "1,2\n", "2 fields"),
        ("long row", good + "1,2,yes,4\n", "4 fields"),
        ("row cut in half", good[:-5], "2 fields"),
        ("comma in quotes, field missing", good + '1,"2,yes"\n', "2 fields"),
        ("commas in quotes, one too many", good + '"1,2",3\n', "2 fields"),
        ("quote opened in the last row", good + '1,2,"yes\n', "not closed"),
        ("quote opened in the header", '"a,b,y\n1,2,yes\n', "not closed"),
        ("comment", "# made today\n" + good, "has no column"),
        ("control character in the header", good.replace("a,b", "a\x07,b"), "has no column"),
        ("turned header", good.replace("a,b", "\u202ea,b"), "has no column"),
        ("NUL in the header", good.replace("a,b", "a\0,b"), "holds a NUL byte"),
        ("NUL in a row", good.replace("yes", "y\0s"), "holds a NUL byte"),
        ("long header", "h" * 300_000 + "," + good, "3 fields"),
        ("JSON", json.dumps([{"a": 1, "b": 2}]), "has no column"),
        ("HTML", "<html><body>404</body></html>\n", "has no column"),
    ):
        yield _text(name, text, says=says)


def _bytes() -> Iterator[OddTable]:
    good = _csv()
    for name, content in (
        ("UTF-16", good.encode("utf-16")),
        ("UTF-32", good.encode("utf-32")),
        ("Latin-1", good.replace("yes", "é").encode("latin-1")),
        ("Latin-1 in the last row", good.encode()[:-4] + b"\xe9\n"),
    ):
        yield OddTable(name, ".csv", lambda path, c=content: path.write_bytes(c), rows=X)
    for name, content, says in (
        ("UTF-16 cut in half", good.encode("utf-16")[:-1], "not UTF-16 as a whole"),
        ("two encodings", good.replace("yes", "é").encode() + b"1,2,\xe9\n", "not UTF-8"),
        ("UTF-16 without mark", good.encode("utf-16-le"), "NUL byte"),
        ("gzip", gzip.compress(good.encode()), "is compressed; name it .csv.gz"),
        ("noise", bytes(range(256)) * 40, "NUL byte|not UTF-8"),
        ("a line of 17 MB", b"a,b,y\n" + b"1" * (17 << 20), "MB long"),
        ("a header of 17 MB", b"a" * (17 << 20), "MB long"),
    ):
        yield OddTable(name, ".csv", lambda path, c=content: path.write_bytes(c), says=says)
    for suffix in (".parquet", ".npz"):
        for name, content in (("nothing", b""), ("CSV", good.encode()), ("noise", b"PAR1" * 90)):
            says = "not a Parquet file" if suffix == ".parquet" else "must hold a plain array X"
            yield OddTable(
                f"{name} as {suffix}",
                suffix,
                lambda path, c=content: path.write_bytes(c),
                says=says,
            )


def _places() -> Iterator[OddTable]:
    for suffix in (".csv", ".parquet", ".npz"):
        yield OddTable(f"folder {suffix}", suffix, lambda path: path.mkdir(), says="is a folder")
        yield OddTable(f"pipe {suffix}", suffix, os.mkfifo, says="is a pipe or a device")
        yield OddTable(f"nowhere {suffix}", suffix, lambda path: None, says="does not exist")
        for name, aim, says in (
            ("endless device", "/dev/zero", "is a pipe or a device"),
            ("dangling link", "nothing here", "does not exist"),
            ("link in a circle", f"t{suffix}", "leads back to itself|symbolic links"),
        ):
            yield OddTable(
                f"{name} {suffix}", suffix, lambda path, a=aim: path.symlink_to(a), says=says
            )
    for suffix in (".xls", "", ".csv.zip", ".json"):
        yield OddTable(
            f"name {suffix!r}",
            suffix,
            lambda path: path.write_text(_csv()),
            says="is not a table that can be read",
        )
    for name in ("\n.csv", "\x1b[2J.csv", os.fsdecode(b"\xff.csv"), "\u202e.csv"):
        yield OddTable(
            f"called {name!r}", name, lambda path: path.write_text(_csv("oops")), says="oops"
        )
    yield OddTable("a sparse file", ".csv", _sparse, says="NUL byte|MB long")


def _sparse(path: Path) -> None:
    path.write_text(_csv())
    os.truncate(path, 2**40)


def _parquet(a: Any = None, y: Any = None, **more: Any) -> Callable[[Path], Any]:
    def write(path: Path) -> None:
        columns = {"a": X[:, 0], "b": X[:, 1] if a is None else a, "y": Y if y is None else y}
        pq.write_table(pa.table({**columns, **more}), path)

    return write


def _column(value: Any, kind: Any, other: Any = None) -> Any:
    """Return b as a column of a kind; None leaves the numbers, a value stands in row `AT`."""
    rows = [0 if other is None else other] * N
    rows[AT] = value
    return pa.array(rows, kind)


def _parquets() -> Iterator[OddTable]:
    whole = np.arange(N) % 5
    rows = np.column_stack([X[:, 0], whole])
    for name, column, due in (
        ("float16", pa.array(X[:, 1].astype(np.float16)), X),
        ("float32", pa.array(X[:, 1].astype(np.float32)), X),
        ("int8", pa.array(whole.astype(np.int8)), rows),
        ("uint64", pa.array(whole.astype(np.uint64)), rows),
        ("booleans", pa.array(whole > 2), np.column_stack([X[:, 0], whole > 2])),
        ("decimals", pa.array([Decimal(str(v)) for v in X[:, 1]], pa.decimal128(10, 3)), X),
        ("categories of numbers", pa.array(X[:, 1]).dictionary_encode(), X),
        ("digits as text", pa.array(list(map(str, whole))), rows),
        ("int64 to the limit", _column(2**53, pa.int64()), None),
    ):
        if due is None:
            due = np.column_stack([X[:, 0], np.zeros(N)])
            due[AT, 1] = 2.0**53
        yield OddTable(f"Parquet of {name}", ".parquet", _parquet(column), rows=due)
    day, hour = datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 12)
    for name, column, says in (
        ("int64 beyond", _column(2**53 + 1, pa.int64()), "more than 53 bits"),
        ("int64 beyond, a gap", _column(2**53 + 1, pa.int64()).take(_gap()), "more than 53 bits"),
        ("uint64 beyond", _column(2**64 - 1, pa.uint64()), "more than 53 bits"),
        ("decimals beyond", _column(Decimal(2**53 + 1), pa.decimal128(38, 0)), "than 53 bits"),
        ("int64 with a gap", _column(None, pa.int64()), "has no number"),
        ("floats with a gap", _column(None, pa.float64()), "has no number"),
        ("booleans with a gap", _column(None, pa.bool_(), True), "has no number"),
        ("NaN", _column(np.nan, pa.float64()), "has no number"),
        ("infinity", _column(-np.inf, pa.float32()), "infinite"),
        ("nulls", pa.nulls(N), "has no number"),
        ("dates", _column(day, pa.date32(), day), "dates or times"),
        ("timestamps", _column(hour, pa.timestamp("ns"), hour), "dates or times"),
        ("timestamps with a gap", _column(None, pa.timestamp("us"), hour), "dates or times"),
        ("times", _column(hour.time(), pa.time64("us"), hour.time()), "dates or times"),
        ("durations", _column(5, pa.duration("s")), "dates or times"),
        ("categories of words", pa.array(Y).dictionary_encode(), "is not a number"),
        ("lists", _column([1.0], pa.list_(pa.float64()), [2.0]), "lists or structs"),
        ("structs", pa.array([{"c": 1.0}] * N), "lists or structs"),
        ("maps", pa.array([[("c", 1.0)]] * N, pa.map_(pa.string(), pa.float64())), "lists"),
        ("bytes", _column(b"1", pa.binary(), b"2"), "bytes"),
    ):
        yield OddTable(f"Parquet of {name}", ".parquet", _parquet(column), says=says)
    for name, y, says in (
        ("structs", pa.array([{"c": 1}] * N), "numbers or labels"),
        ("lists", pa.array([[1]] * N), "numbers or labels"),
        ("dates", _column(day, pa.date32(), day), "numbers or labels"),
        ("bytes", _column(b"yes", pa.binary(), b"no"), "numbers or labels"),
        ("gaps", _column(None, pa.string(), "yes"), "has no label"),
        ("NaN", _column(np.nan, pa.float64()), "has no label"),
        ("NUL at the end", _column("no\0", pa.string(), "no"), "NUL byte"),
    ):
        yield OddTable(f"Parquet with labels of {name}", ".parquet", _parquet(y=y), says=says)
    for name, y in (
        ("categories", pa.array(Y).dictionary_encode()),
        ("large strings", pa.array(list(map(str, Y)), pa.large_string())),
        ("booleans", pa.array(Y == "yes")),
        ("whole numbers", pa.array(whole)),
        ("fractions", pa.array(X[:, 1])),
    ):
        yield OddTable(f"Parquet with labels of {name}", ".parquet", _parquet(y=y), rows=X)
    yield from _parquet_files()


def _gap() -> Any:
    places = list(range(N))
    return pa.array([None if i == 0 else i for i in places])


def _parquet_files() -> Iterator[OddTable]:
    names = ["a", "b", "b", "y"]
    twice = pa.Table.from_arrays([pa.array(c) for c in (X[:, 0], X[:, 1], X[:, 1], Y)], names)
    whole = pa.table({"a": X[:, 0], "b": X[:, 1], "y": Y})
    sink = io.BytesIO()
    pq.write_table(whole, sink)
    content = sink.getvalue()
    for name, table, says in (
        ("a column twice", twice, "columns named 'b'"),
        ("no rows", whole.slice(0, 0), "has no rows"),
        ("no columns", pa.table({}), "has no column"),
        ("a part of a struct", whole.drop(["b"]).append_column("c", twice["a"]), "has no column"),
    ):
        yield OddTable(
            f"Parquet with {name}", ".parquet", lambda path, t=table: pq.write_table(t, path),
            says=says,
        )  # fmt: skip
    for name, cut in (("half", content[: len(content) // 2]), ("without end", content[:-9])):
        yield OddTable(
            f"Parquet {name}", ".parquet", lambda path, c=cut: path.write_bytes(c),
            says="not a Parquet file",
        )  # fmt: skip
    spoiled = bytearray(content)
    spoiled[8:200] = b"\xff" * 192
    yield OddTable(
        "Parquet with spoiled pages", ".parquet", lambda path: path.write_bytes(bytes(spoiled)),
        says="cannot be read as Parquet",
    )  # fmt: skip
    yield OddTable(
        "Parquet in groups of one row", ".parquet",
        lambda path: pq.write_table(whole, path, row_group_size=1), rows=X,
    )  # fmt: skip
    yield OddTable(
        "Parquet of other columns too", ".parquet", _parquet(when=pa.nulls(N, pa.date32())), rows=X
    )
    yield OddTable(
        "Parquet that swells", ".parquet", _swelling_parquet, says="would unpack", dear=True
    )


def _swelling_parquet(path: Path) -> None:
    rows = 20_000_000
    zeros = pa.array(np.zeros(rows, np.float32))
    table = pa.table({"a": zeros, "b": zeros, "y": zeros})
    pq.write_table(table, path, row_group_size=rows, compression="zstd", compression_level=19)


def _npz(**arrays: Any) -> Callable[[Path], Any]:
    return lambda path: np.savez(path, **{"X": X, "y": Y, **arrays})


def _npzs() -> Iterator[OddTable]:
    whole = np.arange(2 * N).reshape(N, 2)
    for name, rows in (
        ("float16", X.astype(np.float16)),
        ("float32", X.astype(np.float32)),
        ("columns first", np.asfortranarray(X)),
        ("big-endian", X.astype(">f8")),
        ("int8", whole.astype(np.int8)),
        ("uint64", whole.astype(np.uint64)),
        ("booleans", whole % 3 == 0),
        ("int64 to the limit", whole + 2**53 - 2 * N),
    ):
        yield OddTable(f"NPZ of {name}", ".npz", _npz(X=rows), rows=np.asarray(rows, float))
    wrong = "does not hold numbers but"
    for name, rows, says in (
        ("int64 beyond", whole + 2**53, "more than 53 bits"),
        ("uint64 beyond", whole.astype(np.uint64) + np.uint64(2**63 + 1), "more than 53 bits"),
        ("one row", X[0], "has shape"),
        ("one number", np.array(1.0), "has shape"),
        ("three axes", X[:, :, None], "has shape"),
        ("three columns", np.ones((N, 3)), "has shape"),
        ("no columns", np.ones((N, 0)), "has shape"),
        ("no rows", np.ones((0, 2)), "has shape|has no rows"),
        ("text", X.astype(str), wrong),
        ("bytes", X.astype("S"), wrong),
        ("complex numbers", X + 1j, wrong),
        ("dates", whole.astype("M8[D]"), wrong),
        ("durations", whole.astype("m8[s]"), wrong),
        ("records", np.zeros(N, [("a", float), ("b", float)]), wrong),
        ("objects", X.astype(object), "must hold a plain array X"),
        ("long doubles", X.astype(np.longdouble), wrong),
        ("NaN", _with(np.nan), "has no number"),
        ("infinity", _with(np.inf), "infinite"),
    ):
        yield OddTable(f"NPZ of {name}", ".npz", _npz(X=rows), says=says)
    for name, y, says in (
        ("another length", Y[1:], "has shape"),
        ("two axes", Y[:, None], "has shape"),
        ("complex numbers", np.ones(N) + 0j, "does not hold numbers or text"),
        ("dates", np.arange(N).astype("M8[D]"), "does not hold numbers or text"),
        ("bytes", Y.astype("S"), "does not hold numbers or text"),
        ("objects", Y.astype(object), "must hold a plain array y"),
        ("NaN", np.full(N, np.nan), "has no label"),
    ):
        yield OddTable(f"NPZ with labels of {name}", ".npz", _npz(y=y), says=says)
    yield from _npz_files()


def _npy(array: Any, **header: Any) -> bytes:
    sink = io.BytesIO()
    if header:
        full = {"descr": "<f8", "fortran_order": False, "shape": (N, 2), **header}
        np.lib.format.write_array_header_1_0(sink, full)
        sink.write(np.ascontiguousarray(array).tobytes())
    else:
        np.lib.format.write_array(sink, array, allow_pickle=False)
    return sink.getvalue()


def _zip(members: dict[str, bytes], **options: Any) -> Callable[[Path], Any]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", **options) as archive:
            for name, content in members.items():
                archive.writestr(name, content)

    return write


def _npz_files() -> Iterator[OddTable]:
    good, says = {"X.npy": _npy(X), "y.npy": _npy(Y)}, "must hold a plain array X"
    yield OddTable("NPZ by lzma", ".npz", _zip(good, compression=zipfile.ZIP_LZMA), rows=X)
    for name, content in (
        ("a claim of terabytes", _npy(X, shape=(10**12, 2))),
        ("a claim of too little", _npy(X, shape=(N - 1, 2))),
        ("a negative length", _npy(X, shape=(-N, 2))),
        ("a pickle", _npy(X, descr="|O")),
        ("no header", b"\x93NUMPY\x01\x00"),
        ("another version", b"\x93NUMPY\x09\x00" + _npy(X)[8:]),
        ("a spoiled header", _npy(X).replace(b"descr", b"d\xff\xfe((")),
    ):
        yield OddTable(f"NPZ with {name}", ".npz", _zip({**good, "X.npy": content}), says=says)
    yield OddTable("NPZ without X", ".npz", _zip({"y.npy": good["y.npy"]}), says=says)
    yield OddTable("one array as NPZ", ".npz", lambda p: p.write_bytes(_npy(X)), says=says)
    yield OddTable("NPZ cut", ".npz", _cut_npz, says=says)
    yield OddTable("NPZ with a false sum", ".npz", _spoiled_npz, says=says)
    yield OddTable("NPZ with a password", ".npz", _locked_npz, says=says)
    yield OddTable("NPZ that swells", ".npz", _swelling_npz, says="would unpack", dear=True)


def _cut_npz(path: Path) -> None:
    np.savez(path, X=X, y=Y)
    path.write_bytes(path.read_bytes()[:-60])


def _spoiled_npz(path: Path) -> None:
    np.savez(path, X=X, y=Y)
    path.write_bytes(path.read_bytes().replace(X[3].tobytes(), X[4].tobytes()))


def _locked_npz(path: Path) -> None:
    np.savez(path, X=X, y=Y)
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.find(mark)
        content[at + offset] |= 1
    path.write_bytes(bytes(content))


def _swelling_npz(path: Path) -> None:
    rows = 20_000_000
    np.savez_compressed(path, X=np.zeros((rows, 2), np.int8), y=Y)


def commands(world: Any, path: Path, out: Path) -> Iterator[list[str]]:
    """Yield what may be asked of a table; `world` has sources, held-out tables and a model."""
    yield ["predict", world.model, str(path), "--out", str(out / "p.csv")]
    held = [f"north={path}", *world.held[1:]]
    yield ["fit", *world.sources, "--held-out", *held, "--out", str(out / "m")]
    pack = ["--name", "north", "--rows", str(path), "--task", "classification"]
    yield ["source", "pack", str(out / "s"), *pack]
    yield ["monitor", world.model, str(path)]


def ask(arguments: list[str]) -> tuple[int, str]:
    """Run a command in this process; return its code and what it says on standard error."""
    from anymix.cli import main

    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(io.StringIO()):
        code = main(arguments)
    return code, said.getvalue()


def fault_of(code: int, said: str, command: str) -> str:
    """Return what is wrong with an answer; nothing if it is success, an alarm or one sentence."""
    if code in ((0, 1) if command == "monitor" else (0,)):
        return ""
    if code not in (2, 3, 4):
        return f"code {code}: {said}"
    more = "anymix: warning: ", "anymix: note: "
    lines = [line for line in said.splitlines() if not line.startswith(more)]
    if len(lines) != 1 or not said.endswith(".\n") or not said.replace("\n", "").isprintable():
        return f"not one printable sentence: {said!r}"
    return ""
