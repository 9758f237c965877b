"""Converters for skl2onnx: boosted trees, imputed and one-hot columns, bounded ridge regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from anymix.densities import BoostedTrees
from anymix.exchange.foreign_trees import (
    foreign_kinds,
    forest_of,
    learned_from_missing,
    trees_of,
)
from anymix.sources import BoundedRidge
from anymix.storage import need

BOOSTED = HistGradientBoostingClassifier, HistGradientBoostingRegressor
FORESTS = (
    *(DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor),
    *(RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor),
)
# From scores to predictions, by the name of scikit-learn's link.
INVERSES = {"IdentityLink": "Identity", "LogLink": "Exp"}


class _Steps:
    """Nodes in a graph of skl2onnx's, as `BoostedTrees.add_to` adds them."""

    def __init__(self, scope: Any, operator: Any, container: Any):
        self.scope = scope
        self.operator = operator
        self.container = container
        self.onnx = need("onnx")
        self.rows = operator.inputs[0].full_name

    def constant(self, value: Any) -> str:
        """Store an array."""
        name, array = str(self.scope.get_unique_variable_name("c")), np.asarray(value)
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        self.container.add_initializer(name, kind, list(array.shape), array.ravel().tolist())
        return name

    def add(
        self, step: str, *inputs: str, domain: str = "", out: str = "", **attributes: Any
    ) -> str:
        """Apply an operator; attributes that are arrays become tensors."""
        name = out or str(self.scope.get_unique_variable_name("v"))
        as_tensor = self.onnx.numpy_helper.from_array
        arrays = {k: as_tensor(v, k) for k, v in attributes.items() if isinstance(v, np.ndarray)}
        self.container.add_node(step, list(inputs), [name], op_domain=domain, **attributes | arrays)
        return name

    def scores(self, trees: BoostedTrees) -> str:
        """Add the trees, which compare in float64 whatever the rows are."""
        rows = self.add("Cast", self.rows, to=self.onnx.TensorProto.DOUBLE)
        return trees.add_to(self, rows)

    def probabilities(self, raw: str, n_scores: int) -> str:
        """Add the probabilities: the sigmoid of one score for two classes, else the softmax."""
        if n_scores > 1:
            return self.add("Softmax", raw, axis=1)
        second = self.add("Sigmoid", raw)
        first = self.add("Sub", self.constant(np.array([1.0])), second)
        return self.add("Concat", first, second, axis=1)

    def classify(self, proba: str) -> None:
        """Give the probabilities, and the labels with the largest ones."""
        best = self.add("ArgMax", proba, axis=1, keepdims=0)
        classes = np.asarray(self.operator.raw_operator.classes_)
        labels = classes.astype(np.int64 if classes.dtype.kind in "biuf" else object)
        label = self.add("Gather", self.constant(labels), best)
        self.add("Identity", label, out=self.operator.outputs[0].full_name)
        self.finish(proba, 1)

    def finish(self, value: str, place: int) -> None:
        """Convert a result to the type that skl2onnx has declared for it."""
        out = self.operator.outputs[place]
        kind = need("skl2onnx.common.data_types").guess_proto_type(out.type)
        self.add("Cast", value, to=kind, out=out.full_name)


def _convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    """P = sigmoid(raw) of two classes, softmax(raw) of more."""
    model, steps = operator.raw_operator, _Steps(scope, operator, container)
    if container.get_options(model, {"raw_scores": False})["raw_scores"]:
        raise ValueError("scores of boosted trees, in place of probabilities, are not written")
    trees = BoostedTrees.of(model)
    steps.classify(steps.probabilities(steps.scores(trees), trees.n_scores))


def _convert_regressor(scope: Any, operator: Any, container: Any) -> None:
    """y = raw, or exp(raw) of the losses of Poisson and gamma."""
    model, steps = operator.raw_operator, _Steps(scope, operator, container)
    link = type(model._loss.link).__name__
    if link not in INVERSES:
        raise ValueError(f"the loss {model.loss!r} has a link that is not known")
    raw = steps.scores(BoostedTrees.of(model))
    steps.finish(steps.add(INVERSES[link], raw), 0)


def _convert_foreign(scope: Any, operator: Any, container: Any) -> None:
    """Trees of XGBoost, LightGBM or CatBoost: their scores through the link of their objective."""
    steps, model = _Steps(scope, operator, container), operator.raw_operator
    foreign = trees_of(model)
    raw = steps.scores(foreign.trees)
    if is_classifier(model):
        if foreign.link not in ("sigmoid", "softmax"):
            raise ValueError(f"probabilities with the link {foreign.link!r} are not written")
        steps.classify(steps.probabilities(raw, foreign.trees.n_scores))
    else:
        operators = {"identity": "Identity", "exp": "Exp", "sigmoid": "Sigmoid"}
        steps.finish(steps.add(operators[foreign.link], raw), 0)


def _convert_forest(scope: Any, operator: Any, container: Any) -> None:
    """The mean of trees; skl2onnx sends missing values another way than scikit-learn does.

    Three or more classes, each of which needs trees of its own here, are left to skl2onnx if no
    missing values were trained on.
    """
    steps, model = _Steps(scope, operator, container), operator.raw_operator
    several = len(getattr(model, "classes_", ())) > 2
    if getattr(model, "n_outputs_", 1) > 1 or (several and not learned_from_missing(model)):
        own = need("skl2onnx.common._registration").get_converter
        own(operator.type)(scope, operator, container)
        return
    trees = forest_of(model)
    raw = steps.scores(trees)
    if not is_classifier(model):
        steps.finish(raw, 0)
    elif trees.n_scores > 1:
        steps.classify(raw)
    else:
        first = steps.add("Sub", steps.constant(np.array([1.0])), raw)
        steps.classify(steps.add("Concat", first, raw, axis=1))


def _convert_imputer(scope: Any, operator: Any, container: Any) -> None:
    """x, or the column's number where x is missing; other than for float64, as skl2onnx does it."""
    model, types = operator.raw_operator, need("skl2onnx.common.data_types")
    double = isinstance(operator.inputs[0].type, types.DoubleTensorType)
    gaps = isinstance(model.missing_values, float) and np.isnan(model.missing_values)
    numbers = np.asarray(model.statistics_)
    plain = numbers.dtype.kind == "f" and np.isfinite(numbers).all() and not model.add_indicator
    if not (double and gaps and plain and len(operator.inputs) == 1):
        own = need("skl2onnx.common._registration").get_converter(operator.type)
        own(scope, operator, container)
        return
    steps = _Steps(scope, operator, container)
    filled = steps.constant(numbers.astype(np.float64))
    gap = steps.add("IsNaN", steps.rows)
    steps.add("Where", gap, filled, steps.rows, out=operator.outputs[0].full_name)


def _convert_indicator(scope: Any, operator: Any, container: Any) -> None:
    """1 where x is a missing value, else 0, for all columns."""
    model, steps = operator.raw_operator, _Steps(scope, operator, container)
    if model.features != "all" or not np.isnan(model.missing_values):
        raise ValueError("MissingIndicator is written with features='all' and missing values NaN")
    steps.finish(steps.add("IsNaN", steps.rows), 0)


def _convert_one_hot(scope: Any, operator: Any, container: Any) -> None:
    """A column for each category, 1 where x is its number; other than for numbers as skl2onnx."""
    model, own = operator.raw_operator, need("skl2onnx.common._registration").get_converter
    numbers = all(np.asarray(part).dtype.kind in "fiu" for part in model.categories_)
    plain = model.drop is None and model.handle_unknown == "ignore"
    if not (numbers and plain and not model._infrequent_enabled and len(operator.inputs) == 1):
        own(operator.type)(scope, operator, container)
        return
    steps, kind = _Steps(scope, operator, container), operator.inputs[0].type
    types = need("skl2onnx.common.data_types")
    dtype = np.float64 if isinstance(kind, types.DoubleTensorType) else np.float32
    parts = []
    for j, categories in enumerate(model.categories_):
        place = steps.constant(np.array([j], dtype=np.int64))
        column = steps.add("Gather", steps.rows, place, axis=1)
        parts.append(steps.add("Equal", column, steps.constant(categories.astype(dtype)[None])))
    numbers_of = [steps.add("Cast", part, to=steps.onnx.TensorProto.FLOAT) for part in parts]
    steps.finish(steps.add("Concat", *numbers_of, axis=1), 0)


def _convert_bounded(scope: Any, operator: Any, container: Any) -> None:
    """min(max(w·x + b, lower), upper)."""
    model, steps = operator.raw_operator, _Steps(scope, operator, container)
    types = need("skl2onnx.common.data_types")
    double = isinstance(operator.inputs[0].type, types.DoubleTensorType)
    dtype = np.float64 if double else np.float32
    slopes = steps.constant(model.coef_[:, None].astype(dtype))
    numbers = (model.intercept_, model.lower_, model.upper_)
    step, lower, upper = (steps.constant(np.array([[n]], dtype=dtype)) for n in numbers)
    raw = steps.add("Add", steps.add("MatMul", steps.rows, slopes), step)
    steps.finish(steps.add("Min", steps.add("Max", raw, lower), upper), 0)


def _convert_fourier(scope: Any, operator: Any, container: Any) -> None:
    """√(2/n) cos(xW + b), the n random features of an RBF kernel."""
    model, steps = operator.raw_operator, _Steps(scope, operator, container)
    types = need("skl2onnx.common.data_types")
    double = isinstance(operator.inputs[0].type, types.DoubleTensorType)
    dtype = np.float64 if double else np.float32
    slopes = steps.constant(model.random_weights_.astype(dtype))
    offsets = steps.constant(model.random_offset_[None].astype(dtype))
    waves = steps.add("Cos", steps.add("Add", steps.add("MatMul", steps.rows, slopes), offsets))
    height = steps.constant(np.array([[np.sqrt(2.0 / model.n_components)]], dtype=dtype))
    steps.finish(steps.add("Mul", waves, height), 0)


def _features(operator: Any) -> None:
    """As many columns as random features, of the type of the input."""
    kind = operator.inputs[0].type
    operator.outputs[0].type = type(kind)([None, operator.raw_operator.n_components])


def _same_shape(operator: Any) -> None:
    """As many columns as there are, of the type of the input."""
    kind = operator.inputs[0].type
    operator.outputs[0].type = type(kind)([None, operator.raw_operator.n_features_in_])


def _two_outputs(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Labels and probabilities; skl2onnx does not see that CatBoost's are classifiers."""
    types = need("skl2onnx.common.data_types")
    operator = scope.declare_local_operator(f"Anymix{type(model).__name__}", model)
    operator.inputs = inputs
    kind = types.guess_tensor_type(inputs[0].type)
    operator.outputs.append(scope.declare_local_variable("label", types.Int64TensorType()))
    operator.outputs.append(scope.declare_local_variable("probabilities", kind))
    return operator.outputs


def _one_number(operator: Any) -> None:
    """One column, of the type of the input."""
    operator.outputs[0].type = type(operator.inputs[0].type)([None, 1])


def register_converters() -> None:
    """Register models that skl2onnx does not support."""
    register = need("skl2onnx").update_registered_converter
    known = (
        (MissingIndicator, _same_shape, _convert_indicator),
        (BoundedRidge, _one_number, _convert_bounded),
        (RBFSampler, _features, _convert_fourier),
    )
    for kind, shape, convert in known:
        register(kind, f"Anymix{kind.__name__}", shape, convert)
    shapes = need("skl2onnx.common.shape_calculator")
    for kind in foreign_kinds():
        classifies = kind.__name__.endswith("Classifier")
        shape = shapes.calculate_linear_classifier_output_shapes if classifies else _one_number
        options = {"zipmap": [True, False], "nocl": [True, False], "output_class_labels": [False]}
        name = f"Anymix{kind.__name__}"
        more: dict[str, Any] = {"options": options, "parser": _two_outputs} if classifies else {}
        register(kind, name, shape, _convert_foreign, **more)


# Its own way knows no categories, no float64 where missing values are filled, and casts NaN among
# codes of categories to a whole number.
CONVERTERS = {
    **dict.fromkeys(FORESTS, _convert_forest),
    HistGradientBoostingClassifier: _convert_classifier,
    HistGradientBoostingRegressor: _convert_regressor,
    OneHotEncoder: _convert_one_hot,
    SimpleImputer: _convert_imputer,
}
