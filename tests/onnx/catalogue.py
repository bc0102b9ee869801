"""The networks of these tests: how each is made, fed and trained, and what is special about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

import assorted
import language
import samples
import vision

STEPS = 20


@dataclass(frozen=True)
class Example:
    make: Callable[[], nn.Module]
    data: samples.Maker
    inputs: tuple[str, ...] = ("x",)
    outputs: tuple[str, ...] = ("output",)
    model: dict = field(default_factory=dict)  # keys of the recipe's section "model"
    batch_size: int = 16
    lr: dict[str, float] = field(default_factory=dict)  # optimizer -> where the usual one learns nothing or too fast
    eps: dict[str, float] = field(default_factory=dict)  # optimizer -> where rounding of small gradients shows with the usual one
    steps: dict[str, int] = field(default_factory=dict)  # optimizer -> where rounding leads elsewhere after STEPS; see steps_of
    # Parameters (globs) whose gradient is zero in true arithmetic, all or a part of it. They move by rounding alone.
    zero_gradient: dict[str, slice] = field(default_factory=dict)
    # Form -> parameters that are not in the file any more: the export computed tables from them, which are frozen.
    lost: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # Whether an export that folds batch norm does so with running statistics of the data.
    measured: bool = False

    def steps_of(self, optimizer: str) -> int:
        """How many updates are compared. Where a comparison is close (max pooling, hard swish, an average over few pixels)
        rounding decides it, differently on each type of processor, and from there on two runs are different ones: eager
        PyTorch that starts with weights 6e-8 away does so, too, in one to five of eight such starts. Losses differ by 4e-3
        (resnet18, sgd) and 6e-5 (mobilenet_v3_small, adamw) after steps 12 to 17. Fewer steps are compared there, with the
        same tolerances.
        """
        return self.steps.get(optimizer, STEPS)

    @property
    def loss(self) -> str:
        return self.model.get("loss", "cross_entropy")


ALL = slice(None)
# Softmax does not see what adds the same to all scores of a query, as the bias of the keys does.
KEYS = slice(32, 64)  # of query, key and value in one
# Nor does batch norm see a shift of a whole channel: a bias right before it; and, where blocks only add and end without
# an activation, the bias of the last batch norm of each: what reads the sum is a convolution 1 x 1 before a batch norm.
PROJECTIONS = {"features.1.block.2.1.bias": ALL, "features.*.block.3.1.bias": ALL}
FASTER = {"sgd": 0.2, "adamw": 0.01}

EXAMPLES = {
    "resnet18": Example(vision.ResNet18, samples.images(64), lr={"sgd": 0.005}, steps={"sgd": 13}),
    "mobilenet_v3_small": Example(vision.MobileNetV3Small, samples.images(64),
                                  zero_gradient={"features.[23].block.2.1.bias": ALL, **PROJECTIONS}, measured=True,
                                  steps={"adamw": 14}),
    # Of its 49 batch norms those over few pixels amplify rounding: by 1000 in 20 steps with the usual lr.
    "efficientnet_b0": Example(vision.EfficientNetB0, samples.images(64), batch_size=32,
                               lr={"adamw": 0.003}, eps={"adamw": 1e-3}, zero_gradient=PROJECTIONS, measured=True),
    "convnext": Example(vision.ConvNeXt, samples.images(32)),
    "vit": Example(vision.ViT, samples.images(32), zero_gradient={"*.in_proj_bias": KEYS}),
    "unet": Example(vision.UNet, samples.segments, model={"class_dim": 1}),
    "gpt": Example(language.Gpt, samples.next_tokens, zero_gradient={"*.c_attn.bias": KEYS},
                   lost={"D": ("wpe.weight",)}),
    "bert": Example(language.Bert, samples.padded_words, inputs=("tokens", "mask"),
                    zero_gradient={"*.key.bias": ALL}, lost={"D": ("position_embeddings.weight",)}),
    "t5": Example(language.T5, samples.translations, inputs=("source", "previous"),
                  lost={"D": ("encoder_bias.weight", "decoder_bias.weight")}),
    "lstm": Example(language.LstmClassifier, samples.words(language.LENGTH), lr=FASTER),
    "lstm_states": Example(language.LstmStates, samples.words(language.LENGTH), lr=FASTER),
    "gru": Example(language.GruClassifier, samples.series, lr=FASTER),
    "rnn": Example(language.RnnClassifier, samples.series),
    "batch_norm_mlp": Example(assorted.BatchNormMlp, samples.vectors, zero_gradient={"fc1.bias": ALL}),
    "juggler": Example(assorted.Juggler, samples.images(16)),
    "stylist": Example(assorted.Stylist, samples.images(16), zero_gradient={"conv[12].bias": ALL}),
    "bag_of_words": Example(assorted.BagOfWords, samples.words(8), lr={"sgd": 0.5, "adamw": 0.01}),
    "several_outputs": Example(assorted.SeveralOutputs, samples.vectors, outputs=("features", "logits", "norm"),
                               model={"output": "logits"}),
    "clicks": Example(assorted.Clicks, samples.clicks, inputs=("categories", "numbers"),
                      model={"loss": "bce_with_logits"}),
    "plain": Example(assorted.Plain, samples.vectors),
    "regressor": Example(assorted.Regressor, samples.regression, model={"loss": "mse"}),
}


def make_data(name: str) -> samples.Fields:
    fields = EXAMPLES[name].data(np.random.default_rng(5))
    return {key: np.ascontiguousarray(array) for key, array in fields.items()}


@torch.no_grad()
def make_model(name: str, form: str = "pt") -> nn.Module:
    """In training mode. All elements of its floating-point parameters and buffers differ from one another, from 0 and
    from 1: exporters merge equal tensors and drop neutral ones, and matching.py tells elements apart by value.
    """
    torch.manual_seed(3)
    model = EXAMPLES[name].make()
    statistics = [b for key, b in model.named_buffers() if key.endswith(("running_mean", "running_var"))]
    tensors = [*model.parameters(), *statistics]
    for tensor in tensors:
        tensor.add_(0.05 * torch.randn_like(tensor))
    if form == "D" and EXAMPLES[name].measured:
        _measure_statistics(name, model)
    _separate(tensors)
    return model


def _measure_statistics(name: str, model: nn.Module) -> None:
    """Running statistics as training would have left them, for exports that fold them into convolutions: with others,
    deep networks give the same for every sample from then on. Where they are trained, they start far from there.
    """
    norms = [m for m in model.modules() if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d))]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 1.0
    fields = make_data(name)
    model(*(torch.from_numpy(fields[key]) for key in EXAMPLES[name].inputs))
    for norm, momentum in zip(norms, momenta):
        norm.momentum = momentum
        norm.num_batches_tracked.zero_()


def _separate(tensors: list[Tensor]) -> None:
    """Adds noise to elements that are equal to others, until none are."""
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    while True:
        order = flat.argsort()
        again = order[1:][flat[order][1:] == flat[order][:-1]]
        if len(again) == 0:
            break
        flat[again] += 0.001 * torch.randn(len(again))
    for tensor, elements in zip(tensors, flat.split([tensor.numel() for tensor in tensors])):
        tensor.copy_(elements.view_as(tensor))
