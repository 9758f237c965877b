import numpy as np
import pytest
from sklearn.base import clone

from experiments import networks
from experiments.made_up import made_up_images
from experiments.networks import ConvNet, need_torch

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def images():
    return made_up_images(n_train=200, n_test=50)["mnist"]


@pytest.fixture(scope="module")
def net(images):
    return ConvNet(12, random_state=1).fit(images.x_train, images.y_train)


def test_it_learns_what_it_was_shown(net, images):
    assert (net.predict(images.x_test) == images.y_test).mean() > 0.9
    proba = net.predict_proba(images.x_test)
    assert proba.shape == (50, 10)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)


def test_labels_need_not_be_numbers_from_zero(images):
    names = np.array(list("abcdefghij"))[images.y_train]
    net = ConvNet(1).fit(images.x_train, names)
    assert net.classes_.tolist() == list("abcdefghij")
    assert set(net.predict(images.x_test)) <= set("abcdefghij")


def test_scores_are_an_affine_map_of_the_rectified_features(net, images):
    """Against the whole network as PyTorch runs it."""
    assert net.transform(images.x_test).shape == (50, 128)
    module = networks._module(torch, 10)
    module.load_state_dict({k: torch.from_numpy(v) for k, v in net.weights_.items()})
    x = torch.from_numpy((images.x_test[:, None] - 127.5) / 64).float()
    with torch.inference_mode():
        wanted = torch.softmax(module.eval()(x), dim=1).numpy()
    np.testing.assert_allclose(net.predict_proba(images.x_test), wanted, atol=1e-5)


def test_the_answer_for_an_image_does_not_depend_on_the_others(net, images):
    alone = np.vstack([net.predict_proba(images.x_test[i : i + 1]) for i in range(5)])
    np.testing.assert_allclose(alone, net.predict_proba(images.x_test)[:5], atol=1e-6)


def test_rows_of_pixels_are_images(net, images):
    flat = images.x_test.reshape(50, -1)
    np.testing.assert_array_equal(net.transform(flat), net.transform(images.x_test))


def test_same_seed_same_network_and_torchs_own_randomness_is_left_alone(images):
    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    one, two = (ConvNet(1, random_state=3).fit(images.x_train, images.y_train) for _ in "ab")
    other = ConvNet(1, random_state=4).fit(images.x_train, images.y_train)
    assert all(np.array_equal(one.weights_[name], two.weights_[name]) for name in one.weights_)
    assert not np.array_equal(one.weights_["18.bias"], other.weights_["18.bias"])
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_saved_network_is_the_same_network(net, images, tmp_path):
    path = tmp_path / "new folder" / "net.npz"
    net.save(path)
    assert [file.name for file in path.parent.iterdir()] == ["net.npz"]
    again = clone(net).load(path)
    np.testing.assert_array_equal(
        again.predict_proba(images.x_test), net.predict_proba(images.x_test)
    )


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "net.npz"
    path.write_bytes(b"PK but no more")
    with pytest.raises(ValueError, match=r"net\.npz holds no network; delete it"):
        ConvNet().load(path)


def test_images_of_another_size_are_refused(net):
    with pytest.raises(ValueError, match=r"32 × 32 .* got shape \(3, 28, 28\)"):
        net.predict(np.zeros((3, 28, 28), dtype=np.uint8))


def test_every_image_is_reported(images):
    seen = []
    ConvNet(2, report=seen.append).fit(images.x_train, images.y_train)
    assert sum(seen) == 2 * 200


def test_without_pytorch_the_remedy_is_named(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(networks, "import_module", missing)
    with pytest.raises(ImportError, match="pip install torch"):
        need_torch()
