"""Makes fixtures/*.onnx: small networks as other tools than PyTorch write them.

Each tool wants packages that do not go together with those of the others, so each has an environment of its own
(Python 3.11), which no test needs:

    keras3    tensorflow-cpu 2.18.1, keras 3.15.1, tf2onnx 1.17.0, onnx 1.16.2, numpy 1.26.4
    keras     tensorflow-cpu 2.15.1, tf2onnx 1.16.1, onnx 1.16.2, protobuf 3.20.3, numpy 1.26.4
    sklearn   scikit-learn 1.9.1, skl2onnx 1.20.0, onnx 1.23.2
    jax       jax 0.10.2, jax2onnx 0.17.1, onnx 1.23.2
    torch     torch 2.11.0, onnxslim 0.1.98, onnx 1.23.2

    python make_fixtures.py keras | keras3 | sklearn | jax | torch

Biases and statistics are random, as converters leave out those that are 0 or 1.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx

FOLDER = Path(__file__).resolve().parent / "fixtures"


def save(model: onnx.ModelProto, name: str) -> None:
    onnx.checker.check_model(model)
    onnx.save(model, FOLDER / f"{name}.onnx")
    print(name, (FOLDER / f"{name}.onnx").stat().st_size, "bytes")


def make_keras(keras3: bool = False) -> None:
    import tensorflow as tf
    import tf2onnx

    layers = tf.keras.layers

    def convert(name: str, shape: tuple[int, ...], *stack: tf.keras.layers.Layer) -> None:
        model = tf.keras.Sequential([tf.keras.Input(shape), *stack])
        rng = np.random.default_rng(0)
        for layer in model.layers:
            layer.set_weights([rng.uniform(0.1, 0.5, weight.shape) if weight.ndim == 1 or weight.max() == 0 else weight
                               for weight in layer.get_weights()])
        signature = [tf.TensorSpec((None, *shape), tf.float32, name="x")]
        function = tf.function(lambda x: model(x, training=False), input_signature=signature)
        save(tf2onnx.convert.from_function(function, input_signature=signature, opset=15)[0], name)

    tf.keras.utils.set_random_seed(0)
    if keras3:
        return convert("keras3_gru", (5, 3), layers.GRU(4), layers.Dense(3))
    convert("keras_dense", (4,), layers.Dense(6, activation="tanh"), layers.Dense(3))
    convert("keras_softmax", (4,), layers.Dense(6, activation="tanh"), layers.Dense(3, activation="softmax"))
    convert("keras_cnn", (6, 6, 1), layers.Conv2D(3, 3), layers.BatchNormalization(), layers.Activation("tanh"),
            layers.AveragePooling2D(), layers.Flatten(), layers.Dense(3))
    convert("keras_simple_rnn", (5, 3), layers.SimpleRNN(4), layers.Dense(3))
    convert("keras_gru", (5, 3), layers.GRU(4), layers.Dense(3))
    convert("keras_gru_loop", (5, 3), layers.GRU(4, reset_after=False), layers.Dense(3))


def make_sklearn() -> None:
    from skl2onnx import to_onnx
    from sklearn.neural_network import MLPClassifier

    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((60, 4)).astype(np.float32), rng.integers(0, 3, 60)
    network = MLPClassifier((6,), activation="tanh", max_iter=3, random_state=0).fit(x, y)
    save(to_onnx(network, x[:1], options={"zipmap": False}, target_opset=17), "sklearn_mlp")


def make_jax() -> None:
    import jax
    import jax.numpy as jnp
    from jax2onnx import to_onnx

    keys = jax.random.split(jax.random.key(0), 6)
    shapes = {"w1": (4, 6), "b1": (6,), "layers": (3, 6, 6), "biases": (3, 6), "w2": (6, 3), "b2": (3,)}
    weights = {name: 0.4 * jax.random.normal(key, shape) for key, (name, shape) in zip(keys, shapes.items())}

    def network(x: jax.Array) -> jax.Array:
        """Three equal layers as a scan over their weights."""
        h = jnp.tanh(x @ weights["w1"] + weights["b1"])
        h, _ = jax.lax.scan(lambda h, own: (jnp.tanh(h @ own[0] + own[1]), None), h,
                            (weights["layers"], weights["biases"]))
        return h @ weights["w2"] + weights["b2"]

    save(to_onnx(network, [("batch", 4)]), "jax_scan")


def make_torch() -> None:
    import onnxslim
    import torch
    from torch import nn

    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(1, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(48, 6), nn.LayerNorm(6), nn.GELU(),
                            nn.Linear(6, 3))
    raw = FOLDER / "raw.onnx"
    torch.onnx.export(network, (torch.randn(2, 1, 6, 6),), raw, dynamo=True, dynamic_shapes=({0: "n"},),
                      external_data=False)
    save(onnxslim.slim(onnx.load(raw)), "torch_slim")
    raw.unlink()


if __name__ == "__main__":
    {"keras": make_keras, "keras3": lambda: make_keras(keras3=True), "sklearn": make_sklearn, "jax": make_jax,
     "torch": make_torch}[sys.argv[1]]()
