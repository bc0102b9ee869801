"""Modules that are exported by decent_train.export: of packages with random weights, and own ones with the usual traps.

Each either trains from its file as in eager PyTorch, or is refused with a message that names the trap.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations

CLASSES, FEATURES, WORDS, LENGTH, WIDTH, SAMPLES = 4, 8, 32, 6, 16, 20
Fields = dict[str, Tensor]


# ---- what trains ---------------------------------------------------------------------------------------------------

class Net(nn.Module):
    """Base of the others: x [B, 8] -> hidden [B, 16] -> logits [B, 4]."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(FEATURES, WIDTH), nn.Linear(WIDTH, CLASSES)

    def hidden(self, x: Tensor) -> Tensor:
        return torch.relu(self.first(x))

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.hidden(x))


class Cnn(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.norm2 = nn.Conv2d(8, 16, 3, stride=2), nn.BatchNorm2d(16)
        self.dropout, self.head = nn.Dropout(dropout), nn.Linear(16, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm1(self.conv1(x)))
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        return self.head(self.dropout(x.mean((2, 3))))


class FrozenNorm(Cnn):
    """One batch norm keeps its statistics in training, on purpose, as fine-tuning does."""

    def train(self, mode: bool = True) -> FrozenNorm:
        super().train(mode)
        self.norm1.eval()
        return self


class Branching(Net):
    """Differs in training in a way of its own."""

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.hidden(x)
        if self.training:
            hidden = hidden * 2 + 1
        return self.last(hidden)


class TwoHeads(Net):
    """Another structure of the output in each mode, as GoogLeNet and detectors have."""

    def __init__(self) -> None:
        super().__init__()
        self.extra = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        hidden = self.hidden(x)
        result = {"logits": self.last(hidden)}
        if self.training:
            result["extra"] = self.extra(hidden)
        return result


class Tied(nn.Module):
    """A language model whose head is its table."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.mix = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.table.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.mix(self.table(x))))


class Buffers(Net):
    """A buffer that no state_dict has, a moving average and a counter that training writes in place."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.linspace(0.5, 1.5, WIDTH), persistent=False)
        self.register_buffer("average", torch.zeros(WIDTH))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.hidden(x) * self.scale
        if self.training:
            self.count.add_(1)
            self.average.mul_(0.9).add_(hidden.detach().mean(0), alpha=0.1)
        return self.last(hidden - self.average)


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase], dropout: float = 0.0) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)
        self.layers = kind(WIDTH, 12, 2, batch_first=True, bidirectional=True, dropout=dropout)
        self.head = nn.Linear(24, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(self.table(x))[0].mean(1))


class Encoder(nn.Module):
    """PyTorch's own layers, which take a fast path in eval mode."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 32, dropout=dropout, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(self.table(x)).mean(1))


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.attention = nn.Linear(FEATURES, WIDTH), nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        return self.head(self.attention(x, x, x)[0].mean(1))


class Several(nn.Module):
    """Two inputs, one of them by keyword, and a dictionary with the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.first, self.last = nn.Embedding(WORDS, WIDTH), nn.Linear(FEATURES, WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, ids: Tensor, mask: Tensor | None = None, *, x: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        words = self.table(ids)
        words = words.mean(1) if mask is None else (words * mask.unsqueeze(-1)).sum(1)
        logits = self.last(torch.tanh(self.first(x) + words))
        if labels is None:
            return {"logits": logits}
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


class Contrastive(Net):
    """The output has a column for each sample of the batch."""

    def forward(self, x: Tensor) -> Tensor:
        z = F.normalize(super().forward(x), dim=1)
        return z @ z.t()


class Depth(Net):
    """Stochastic depth, as torchvision writes it."""

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.hidden(x)
        if self.training:
            hidden = hidden * hidden.new_empty((hidden.shape[0], 1)).bernoulli_(0.5).div_(0.5)
        return self.last(hidden)


class Checkpointed(Net):
    def forward(self, x: Tensor) -> Tensor:
        from torch.utils.checkpoint import checkpoint

        return self.last(checkpoint(self.hidden, x, use_reentrant=False))


class Branch(Net):
    """Branches on the data, which TorchScript keeps."""

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.first(x))
        if bool(hidden.mean() > 0.3):
            hidden = hidden * 0.5
        return self.last(hidden)


class Twice(torch.autograd.Function):
    """A backward that is the derivative."""

    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: object, slope: Tensor) -> Tensor:
        return slope * 2


class Honest(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.last(Twice.apply(self.hidden(x)))


class Counting(Net):
    """Counts its calls, for nobody."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return super().forward(x)


def hooked() -> nn.Module:
    """A forward hook that changes the output: an operator like others."""
    model = Net()
    model.first.register_forward_hook(lambda module, inputs, output: output * 1.5)
    return model


def frozen() -> nn.Module:
    model = Net()
    model.first.requires_grad_(False)
    return model


def normalized() -> nn.Module:
    return nn.Sequential(parametrizations.weight_norm(nn.Linear(FEATURES, WIDTH)), nn.Tanh(), nn.Linear(WIDTH, CLASSES))


def spectral() -> nn.Module:
    return nn.Sequential(parametrizations.spectral_norm(nn.Linear(FEATURES, WIDTH)), nn.Tanh(), nn.Linear(WIDTH, CLASSES))


# ---- what is refused -----------------------------------------------------------------------------------------------

class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: object, slope: Tensor) -> Tensor:
        return -slope


class Reversed(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.last(Reverse.apply(self.hidden(x)))


class HookInForward(Net):
    def forward(self, x: Tensor) -> Tensor:
        hidden = self.hidden(x)
        if hidden.requires_grad:
            hidden.register_hook(lambda slope: slope * 0.1)
        return self.last(hidden)


class Annealed(Net):
    """A number in Python that grows with each call."""

    def __init__(self) -> None:
        super().__init__()
        self.step = 0

    def forward(self, x: Tensor) -> Tensor:
        self.step += 1
        return self.last(self.hidden(x)) * min(1.0, self.step / 100)


class FixedBatch(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.hidden(x).view(3, WIDTH))


class LayerDrop(Net):
    def forward(self, x: Tensor) -> Tensor:
        hidden = self.hidden(x)
        return self.last(hidden if random.random() < 0.5 else hidden * 2)


class PlainTensor(Net):
    """A moving average that is no buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = torch.zeros(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.hidden(x)
        self.mean = 0.5 * self.mean + 0.5 * hidden.detach().mean(0)
        return self.last(hidden - self.mean)


class NoGradients(Net):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).argmax(1)


def with_gradient_hook() -> nn.Module:
    model = Net()
    model.first.weight.register_hook(lambda slope: slope * 3)
    return model


def with_backward_hook() -> nn.Module:
    model = Net()
    model.last.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 2,))
    return model


def with_optimizer_hook() -> nn.Module:
    model = Net()
    model.first.weight.register_post_accumulate_grad_hook(lambda parameter: None)
    return model


def on_meta() -> nn.Module:
    with torch.device("meta"):
        return Net()


def lazy() -> nn.Module:
    return nn.Sequential(nn.LazyLinear(WIDTH), nn.ReLU(), nn.Linear(WIDTH, CLASSES))


# ---- packages ------------------------------------------------------------------------------------------------------

def without_noise(model: nn.Module) -> nn.Module:
    for module in model.modules():
        if isinstance(module, nn.Dropout) or type(module).__name__ == "StochasticDepth":
            module.p = 0.0
    return model


def torchvision(name: str, **options: object) -> nn.Module:
    models = pytest.importorskip("torchvision").models
    return without_noise(getattr(models, name)(num_classes=CLASSES, **options))


def segmentation(name: str, **options: object) -> nn.Module:
    models = pytest.importorskip("torchvision").models.segmentation
    return without_noise(getattr(models, name)(weights=None, weights_backbone=None, num_classes=CLASSES, **options))


def timm(name: str, **options: object) -> nn.Module:
    return pytest.importorskip("timm").create_model(name, num_classes=CLASSES, **options)


SHAPE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
         "max_position_embeddings": 32, "num_labels": CLASSES}
QUIET = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def transformers(name: str, config: str, **options: object) -> nn.Module:
    package = pytest.importorskip("transformers")
    return getattr(package, name)(getattr(package, config)(vocab_size=WORDS, **options))


# ---- data ----------------------------------------------------------------------------------------------------------

def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(SAMPLES, *shape, generator=torch.Generator().manual_seed(seed))


def whole(below: int, *shape: int, seed: int = 0) -> Tensor:
    return torch.randint(below, (SAMPLES, *shape), generator=torch.Generator().manual_seed(seed))


def vectors() -> Fields:
    return {"x": numbers(FEATURES), "y": whole(CLASSES)}


def sequences() -> Fields:
    return {"x": numbers(LENGTH, FEATURES), "y": whole(CLASSES)}


def images(size: int) -> Fields:
    return {"x": numbers(3, size, size), "y": whole(CLASSES)}


def pixels(size: int) -> Fields:
    return {"x": numbers(3, size, size), "y": whole(CLASSES, size, size)}


def texts() -> Fields:
    return {"x": whole(WORDS, LENGTH, seed=1), "y": whole(CLASSES)}


def next_words() -> Fields:
    x = whole(WORDS, LENGTH, seed=1)
    return {"x": x, "y": x.roll(-1, 1)}


def several() -> Fields:
    return {"ids": whole(WORDS, LENGTH, seed=1), "x": numbers(FEATURES), "labels": whole(CLASSES)}


def labelled() -> Fields:
    x = whole(WORDS, LENGTH, seed=1)
    return {"input_ids": x, "attention_mask": torch.ones_like(x), "labels": whole(CLASSES)}


def language() -> Fields:
    x = whole(WORDS, LENGTH, seed=1)
    return {"input_ids": x, "labels": x}


def pairs() -> Fields:
    return {"input_ids": whole(WORDS, LENGTH, seed=1), "labels": whole(WORDS, LENGTH, seed=2)}


def pictures() -> Fields:
    return {"pixel_values": numbers(3, 32, 32), "labels": whole(CLASSES)}


def similar() -> Fields:
    return {"x": numbers(FEATURES), "y": numbers(4, seed=3)}  # batches of 4 samples, so that there are 4 columns


# ---- the zoo -------------------------------------------------------------------------------------------------------

ALL = ("pt2", "pt", "onnx")


@dataclass(frozen=True)
class Row:
    """How to make a module, its data (forward's arguments and perhaps the target "y"), and what comes of it."""

    make: Callable[[], nn.Module]
    data: Callable[[], Fields] = vectors
    formats: tuple[str, ...] = ("pt2",)
    lr: float = 0.02
    written: Mapping[str, str] | None = None  # {format: Check.format} where it is not the usual one
    refused: Mapping[str, str] | None = None  # {format: a pattern of the message}
    # Rounding grows by 10 in each step of a deep network with batch norms (and by 1000 over few pixels: weights that differ
    # by 1e-15 gave losses that differed by 0.1 after 4 steps of RegNet on images of 32 pixels). These train in float64.
    double: bool = False
    noisy: bool = False  # random numbers in training, which are not compared
    loss: str = "cross_entropy"
    class_dim: int = -1


def refused(make: Callable[[], nn.Module], pattern: str, data: Callable[[], Fields] = vectors,
            formats: tuple[str, ...] = ("pt2",)) -> Row:
    return Row(make, data, formats, refused=dict.fromkeys(formats, pattern))


TWO = {"pt2": "torch.export, a program for each mode"}
FALLBACK = {"pt2": "TorchScript"}
ZOO: dict[str, Row] = {
    # own
    "mlp": Row(Net, formats=ALL),
    "cnn": Row(Cnn, partial(images, 16), formats=ALL),
    "cnn_dropout": Row(partial(Cnn, 0.5), partial(images, 16), formats=ALL, noisy=True),
    "frozen_norm": Row(FrozenNorm, partial(images, 16)),
    "branching": Row(Branching, formats=ALL, written=TWO, refused={"onnx": r"'self.training' in Branching \(python_zoo.py:"}),
    "two_heads": Row(TwoHeads),
    "tied": Row(Tied, next_words, formats=ALL),
    "buffers": Row(Buffers, formats=ALL, refused={"onnx": "'self.training' in Buffers"}),
    "frozen": Row(frozen, formats=ALL),
    "lstm": Row(partial(Recurrent, nn.LSTM), texts, formats=ALL),
    "gru": Row(partial(Recurrent, nn.GRU), texts, formats=ALL),
    "encoder": Row(Encoder, texts, formats=("pt2", "onnx")),
    "encoder_dropout": Row(partial(Encoder, 0.1), texts, noisy=True),
    "attention": Row(Attending, sequences, formats=ALL),
    "several": Row(Several, several, loss="output"),
    "contrastive": Row(Contrastive, similar, formats=ALL, loss="mse", written={"pt": "TorchScript, traced"}),
    "depth": Row(Depth, noisy=True),
    "checkpointed": Row(Checkpointed),
    "data_branch": Row(Branch, formats=("pt2", "pt"), written=FALLBACK),
    "honest_function": Row(Honest),
    "counting": Row(Counting),
    "forward_hook": Row(hooked),
    "weight_norm": Row(normalized, formats=("pt2", "onnx")),
    "spectral_norm": Row(spectral, formats=("pt2", "onnx"), refused={"onnx": "the buffer '0.parametrizations.weight.0._[uv]'"}),
    "double": Row(Net, double=True),
    "compiled": Row(lambda: torch.compile(Net())),
    "data_parallel": Row(lambda: nn.DataParallel(Net())),
    # traps
    "gradient_reversal": refused(Reversed, r"the torch.autograd.Function 'Reverse' \(python_zoo.py:\d+\)|Python function call 'Reverse'",
                                 formats=ALL),
    "gradient_hook": refused(with_gradient_hook, r"the hook .* on the gradient of the parameter 'first.weight'", formats=ALL),
    "backward_hook": refused(with_backward_hook, r"the backward hook .* of the module 'last' \(Linear\)"),
    "hook_in_forward": refused(HookInForward, r"the hook .* on the gradient of a tensor \(register_hook, python_zoo.py:\d+\)"),
    "optimizer_hook": refused(with_optimizer_hook, "register_post_accumulate_grad_hook"),
    "annealed": refused(Annealed, r"the attribute 'step' of the module \(Annealed\) changes in forward \(0 -> 1\)", formats=ALL),
    "fixed_batch": refused(FixedBatch, r"the module itself fails in eval mode, 4 samples"),
    "python_random": refused(LayerDrop, "Python's 'random'", formats=("pt2", "onnx")),
    "plain_tensor": refused(PlainTensor, "register them as buffers|register_buffer"),
    "no_gradients": refused(NoGradients, "no output of forward depends on a parameter"),
    "meta": refused(on_meta, "on the device 'meta'", formats=ALL),
    "lazy": refused(lazy, "lazy module", formats=ALL),
    "no_parameters": refused(nn.Flatten, "it has no parameters"),
    # torchvision
    "resnet18": Row(partial(torchvision, "resnet18"), partial(images, 64), ALL, lr=1e-3, double=True),
    "mobilenet_v3_small": Row(partial(torchvision, "mobilenet_v3_small"), partial(images, 64), lr=1e-3, double=True),
    "efficientnet_b0": Row(partial(torchvision, "efficientnet_b0"), partial(images, 64), lr=1e-3, double=True),
    "shufflenet_v2": Row(partial(torchvision, "shufflenet_v2_x0_5"), partial(images, 64), ("pt2", "onnx"), lr=1e-3, double=True),
    "squeezenet": Row(partial(torchvision, "squeezenet1_1"), partial(images, 32), lr=1e-3),
    "regnet_y_400mf": Row(partial(torchvision, "regnet_y_400mf"), partial(images, 64), lr=1e-3, double=True),
    "densenet121": Row(partial(torchvision, "densenet121"), partial(images, 64), lr=1e-3, double=True),
    "vision_transformer": Row(partial(torchvision, "VisionTransformer", image_size=32, patch_size=8, num_layers=2,
                                      num_heads=4, hidden_dim=32, mlp_dim=64), partial(images, 32), ("pt2", "onnx"), 1e-3),
    "swin": Row(partial(torchvision, "SwinTransformer", patch_size=[4, 4], embed_dim=16, depths=[1, 1], num_heads=[2, 4],
                        window_size=[4, 4], stochastic_depth_prob=0.0), partial(images, 32), lr=1e-3),
    "googlenet": Row(partial(torchvision, "googlenet", init_weights=False, aux_logits=True), partial(images, 64), lr=1e-3, double=True,
                     written=FALLBACK),
    "lraspp": Row(partial(segmentation, "lraspp_mobilenet_v3_large"), partial(pixels, 64), lr=1e-3, double=True,
                  class_dim=1),
    # timm
    "timm_vit": Row(partial(timm, "vit_tiny_patch16_224", img_size=32, depth=3), partial(images, 32), ("pt2", "onnx"), 1e-3),
    "timm_regnet": Row(partial(timm, "regnetx_002"), partial(images, 64), lr=1e-3, double=True),
    "timm_mixer": Row(partial(timm, "mixer_s32_224", img_size=64), partial(images, 64), lr=1e-3),
    "timm_convnext": Row(partial(timm, "convnext_atto"), partial(images, 32), ("pt2", "onnx"), lr=1e-3),
    "timm_ghostnet": Row(partial(timm, "ghostnet_050", drop_rate=0.0), partial(images, 64), lr=1e-3, double=True),
    "timm_depth": Row(partial(timm, "vit_tiny_patch16_224", img_size=32, depth=3, drop_path_rate=0.3, proj_drop_rate=0.1),
                      partial(images, 32), lr=1e-3, noisy=True),
    # transformers
    "bert": Row(partial(transformers, "BertForSequenceClassification", "BertConfig", **SHAPE, **QUIET), labelled, loss="output"),
    "bert_dropout": Row(partial(transformers, "BertForSequenceClassification", "BertConfig", **SHAPE), labelled, loss="output",
                        noisy=True),
    "roberta": Row(partial(transformers, "RobertaForSequenceClassification", "RobertaConfig", **SHAPE, **QUIET), labelled,
                   loss="output"),
    "albert": Row(partial(transformers, "AlbertForSequenceClassification", "AlbertConfig", embedding_size=16, **SHAPE,
                          **QUIET, classifier_dropout_prob=0.0), labelled, loss="output"),
    "gpt2": Row(partial(transformers, "GPT2LMHeadModel", "GPT2Config", use_cache=False, n_embd=32, n_layer=2, n_head=4,
                        n_positions=32, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0), language, loss="output"),
    "llama": Row(partial(transformers, "LlamaForCausalLM", "LlamaConfig", use_cache=False, **SHAPE), language, loss="output"),
    "t5": Row(partial(transformers, "T5ForConditionalGeneration", "T5Config", use_cache=False, d_model=32, d_kv=8, d_ff=64,
                      num_layers=2, num_heads=4, dropout_rate=0.0, decoder_start_token_id=0), pairs, loss="output"),
    "hf_vit": Row(partial(transformers, "ViTForImageClassification", "ViTConfig", image_size=32, patch_size=8, **SHAPE, **QUIET),
                  pictures, loss="output"),
}


def make(name: str) -> nn.Module:
    """In train mode, the same each time."""
    torch.manual_seed(1)
    model = ZOO[name].make()
    return (model.double() if ZOO[name].double else model).train()


def fields_of(name: str) -> Fields:
    fields = ZOO[name].data()
    if not ZOO[name].double:
        return fields
    return {key: field.double() if field.is_floating_point() else field for key, field in fields.items()}
