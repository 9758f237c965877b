"""What PyTorch and skl2onnx write by default is packed where it can be, else the remedy is said."""

import logging
import os
import shutil

import numpy as np
import onnx
import pytest
from skl2onnx import to_onnx
from sklearn.linear_model import LogisticRegression

from anymix import Source
from anymix.densities import GaussianKDE
from anymix.exceptions import AuditError, InputError
from anymix.exchange import pack_source, read_source

X = np.random.default_rng(0).normal(size=(80, 3))
KDE = GaussianKDE(0.5).fit(X)
LABELS = ["no", "yes"]
BOTH = np.array(LABELS)


def packed(predictor, place, classes=LABELS, density=KDE):
    pack_source(Source("a", predictor, density, classes=classes), place / "packed")
    return read_source(place / "packed")


def logistic(labels=BOTH):
    return LogisticRegression().fit(X, labels[(X[:, 0] > 0).astype(int)])


def test_dictionaries_of_probabilities_become_a_table(tmp_path):
    model = logistic()
    whole = to_onnx(model, X[:1].astype(np.float32))
    assert "ZipMap" in [node.op_type for node in whole.graph.node]
    (tmp_path / "a.onnx").write_bytes(whole.SerializeToString())
    found = packed(tmp_path / "a.onnx", tmp_path)
    np.testing.assert_allclose(found.predict_proba(X, BOTH), model.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("labels", [BOTH, np.array([0, 1])])
def test_classes_in_another_order_are_refused(tmp_path, labels):
    whole = to_onnx(logistic(labels), X[:1].astype(np.float32)).SerializeToString()
    first, second = labels.tolist()
    with pytest.raises(InputError, match=f"names its classes {first}, {second}; give --classes"):
        packed(whole, tmp_path, classes=[second, first])


def outside(place, location="w.bin"):
    """A graph that skl2onnx wrote, with weights in a second file."""
    onnx_options = {"zipmap": False}
    whole = to_onnx(logistic(), X[:1].astype(np.float32), options=onnx_options)
    for node in whole.graph.node:
        if node.op_type == "LinearClassifier":
            weights = np.array(onnx.helper.get_node_attr_value(node, "coefficients"))
    # The same model by products: weights of a linear classifier are no tensors.
    W, make = weights.reshape(2, 3).T.astype(np.float32), onnx.helper
    b = logistic().intercept_[0] * np.array([-1.0, 1.0])
    nodes = [
        make.make_node("Gemm", ["X", "W", "b"], ["s"]),
        make.make_node("Softmax", ["s"], ["p"], axis=1),
    ]
    infos = [
        make.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", size])
        for name, size in (("X", 3), ("p", 2))
    ]
    arrays = {"W": W / 2, "b": (b / 2).astype(np.float32)}
    tensors = [onnx.numpy_helper.from_array(a, name) for name, a in arrays.items()]
    graph = make.make_graph(nodes, "g", infos[:1], infos[1:], tensors)
    model = make.make_model(graph, ir_version=10, opset_imports=[make.make_opsetid("", 18)])
    place.mkdir(exist_ok=True)
    onnx.save_model(
        model,
        place / "a.onnx",
        save_as_external_data=True,
        location=location,
        size_threshold=0,
    )
    return place / "a.onnx"


def told_location(path, location):
    """Write another place of the weights into a file."""
    model = onnx.load_model(path, load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = location
    path.write_bytes(model.SerializeToString())


def test_weights_beside_the_file_are_read(tmp_path):
    path = outside(tmp_path / "mine")
    due = logistic().predict_proba(X)
    np.testing.assert_allclose(packed(path, tmp_path).predict_proba(X, BOTH), due, atol=1e-4)


def test_weights_that_are_missing_or_short_are_named(tmp_path):
    path = outside(tmp_path / "mine")
    weights = path.with_name("w.bin")
    weights.write_bytes(weights.read_bytes()[:4])
    with pytest.raises(InputError, match=r"'w.bin' is shorter than the weights in it"):
        packed(path, tmp_path)
    weights.unlink()
    with pytest.raises(InputError, match=r"'w.bin', which is not there; put that file next to it"):
        packed(path, tmp_path)


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/passwd", "sub/w.bin", "..", ""])
def test_weights_elsewhere_are_not_looked_at(tmp_path, location):
    path = outside(tmp_path / "mine")
    shutil.copy(path.with_name("w.bin"), tmp_path / "secret.bin")
    told_location(path, location)
    with pytest.raises(InputError, match="which is not next to it; export it with external_data=F"):
        packed(path, tmp_path)


def test_weights_behind_a_link_are_not_read(tmp_path):
    path = outside(tmp_path / "mine")
    os.rename(path.with_name("w.bin"), tmp_path / "secret.bin")
    path.with_name("w.bin").symlink_to(tmp_path / "secret.bin")
    with pytest.raises(AuditError, match="is not a plain file"):
        packed(path, tmp_path)


def test_weights_outside_are_refused_of_strangers(tmp_path):
    content = outside(tmp_path / "mine").read_bytes()
    with pytest.raises(AuditError, match="lie outside the file; export it with external_data=Fal"):
        packed(content, tmp_path)


def test_scores_are_refused_with_their_remedy(tmp_path):
    path = outside(tmp_path / "mine")
    model = onnx.load_model(path)
    model.graph.node.pop()
    model.graph.output[0].name = "s"
    with pytest.raises(AuditError, match=r"are scores, .* end in torch.nn.Softmax\(dim=1\)"):
        packed(model.SerializeToString(), tmp_path)


def networks(torch):
    nn = torch.nn

    class Conv(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm, self.last = (
                nn.Conv2d(1, 4, 3),
                nn.BatchNorm2d(4),
                nn.Linear(36, 2),
            )

        def forward(self, rows):
            images = torch.relu(self.norm(self.conv(rows.reshape(-1, 1, 8, 8))))
            return torch.softmax(self.last(nn.functional.max_pool2d(images, 2).flatten(1)), 1)

    layers = [nn.Linear(3, 3000), nn.BatchNorm1d(3000), nn.GELU(), nn.LayerNorm(3000)]
    return {
        "small": nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2), nn.Softmax(1)),
        "large": nn.Sequential(*layers, nn.Dropout(0.5), nn.Linear(3000, 2), nn.Softmax(1)),
        "images": Conv(),
    }


@pytest.fixture
def exported(tmp_path):
    """Export a network by PyTorch's newer way, quietly."""
    torch = pytest.importorskip("torch", reason="the extra networks brings PyTorch")
    pytest.importorskip("onnxscript", reason="PyTorch's newer exporter needs onnxscript")
    torch.manual_seed(0)

    def call(name, n=1, **options):
        module = networks(torch)[name].eval()
        d = 64 if name == "images" else 3
        level, where = logging.root.manager.disable, tmp_path / f"{name}.onnx"
        logging.disable(logging.CRITICAL)
        try:
            torch.onnx.export(module, (torch.randn(n, d),), where, verbose=False, **options)
        finally:
            logging.disable(level)
        rows = np.random.default_rng(1).normal(size=(80, d))
        with torch.no_grad():
            return where, rows, module(torch.tensor(rows, dtype=torch.float32)).numpy()

    return call


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("name", ["small", "large"])
def test_what_pytorch_writes_by_default_is_packed(exported, tmp_path, name, n):
    path, rows, due = exported(name, n)
    found = packed(path, tmp_path).predict_proba(rows, BOTH)
    np.testing.assert_allclose(found, due, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_where_rows_cannot_be_freed_the_line_to_type_is_said_and_works(exported, tmp_path):
    import torch

    path, rows, due = exported("images")
    density = GaussianKDE(0.5).fit(rows)
    with pytest.raises(AuditError) as refusal:
        packed(path, tmp_path, density=density)
    line = str(refusal.value).split("; type ")[1].removesuffix(".")
    assert line.startswith("torch.onnx.export(model.eval(), (torch.zeros(2, 64),)")
    torch.manual_seed(0)
    model = networks(torch)["images"]
    line = line.replace('"model.onnx"', repr(str(tmp_path / "again.onnx")))
    eval(line, {"torch": torch, "model": model})
    found = packed(tmp_path / "again.onnx", tmp_path, density=density)
    np.testing.assert_allclose(found.predict_proba(rows, BOTH), due, atol=1e-5)


def test_a_number_of_rows_that_is_fixed_in_a_constant_is_refused(tmp_path):
    """One row's constant added to the other row would make answers depend on places."""
    make = onnx.helper
    nodes = [
        make.make_node("Add", ["X", "c"], ["a"]),
        make.make_node("MatMul", ["a", "W"], ["y"]),
    ]
    tensors = {"c": np.ones((2, 3)), "W": np.ones((3, 1))}
    held = [onnx.numpy_helper.from_array(a.astype(np.float32), n) for n, a in tensors.items()]
    infos = [
        make.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, size])
        for name, size in (("X", 3), ("y", 1))
    ]
    graph = make.make_graph(nodes, "g", infos[:1], infos[1:], held)
    model = make.make_model(graph, ir_version=10, opset_imports=[make.make_opsetid("", 18)])
    with pytest.raises(AuditError, match=r"it was exported for 2 rows at a time; type torch.onnx"):
        packed(model.SerializeToString(), tmp_path, classes=None)
