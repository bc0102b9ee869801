"""Networks of torchvision and transformers, with random weights: exported, imported, compared with onnxruntime, and tried in
a training step. By hand, as it needs packages that the tests do not:

    pip install torchvision transformers
    python tests/onnx/zoo.py --run build/bin/onnx_run --train build/bin/decent-train            # all, some minutes
    python tests/onnx/zoo.py --run build/bin/onnx_run --train build/bin/decent-train --forms D swin bert

A line for each network and form (see exports.py): the nodes of the file, the largest error of an output over the largest
output, and the parameters that would train, of those that the network has. Where the form D has fewer, it has folded batch
norm or made tables of what it could compute; where it has more, it has untied weights. Exits with 1 where an error is above
1e-5 or a program fails; what PyTorch cannot export is only named.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import Tensor, nn

import nodes

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("support", "cli")]

import exports  # noqa: E402
import inference  # noqa: E402
from tensors import write_safetensors  # noqa: E402

# Sums in another order; what was measured is 3e-6 at most.
MOST_ERROR = 1e-5

BATCH = 2
TEXT = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
        "max_position_embeddings": 64}
SEQUENCES = {"vocab_size": 100, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
             "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}


@dataclass(frozen=True)
class Network:
    make: Callable[[], nn.Module]
    inputs: dict[str, Tensor]


class FirstOutput(nn.Module):
    """The network, from tensors to one tensor."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network, self.names = network.make(), list(network.inputs)
        for parameter in self.network.parameters():  # exporters merge equal ones, and some outputs would all be zero
            parameter.data += 0.01 * torch.randn_like(parameter)

    def forward(self, first: Tensor, second: Tensor | None = None) -> Tensor:
        inputs = [first] if second is None else [first, second]
        by_name = self.names != ["x"]
        output = self.network(**dict(zip(self.names, inputs))) if by_name else self.network(*inputs)
        if isinstance(output, Tensor):
            return output
        return output["logits"] if "logits" in output else next(iter(output.values()))


def tokens() -> Tensor:
    return torch.randint(1, 90, (BATCH, 12))


def image(size: int) -> Tensor:
    return torch.randn(BATCH, 3, size, size)


def vision() -> Iterator[tuple[str, Network]]:
    from torchvision import models

    names = ("alexnet vgg11_bn resnet18 resnext50_32x4d wide_resnet50_2 densenet121 squeezenet1_1 mobilenet_v2 "
             "mobilenet_v3_large mnasnet0_5 shufflenet_v2_x0_5 efficientnet_b0 efficientnet_v2_s regnet_y_400mf "
             "regnet_x_400mf convnext_tiny vit_b_16 swin_t swin_v2_t maxvit_t googlenet inception_v3").split()
    sizes = {"alexnet": 224, "vgg11_bn": 224, "vit_b_16": 224, "maxvit_t": 224, "inception_v3": 299}
    for name in names:
        own = {"aux_logits": False, "init_weights": False} if name in ("googlenet", "inception_v3") else {}
        yield name, Network(lambda name=name, own=own: getattr(models, name)(weights=None, num_classes=10, **own),
                            {"x": image(sizes.get(name, 64))})
    for name in ("deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large", "fcn_resnet50"):
        yield name, Network(lambda name=name: getattr(models.segmentation, name)(
            weights=None, weights_backbone=None, num_classes=5), {"x": image(64)})
    yield "r3d_18", Network(lambda: models.video.r3d_18(num_classes=5), {"x": torch.randn(BATCH, 3, 8, 32, 32)})


def language() -> Iterator[tuple[str, Network]]:
    import transformers

    def network(kind: str, head: str, inputs: dict[str, Tensor], **config: object) -> tuple[str, Network]:
        settings = getattr(transformers, kind + "Config")(**config)
        return kind, Network(lambda: getattr(transformers, kind + head)(settings), inputs)

    one, masked = {"input_ids": tokens()}, {"input_ids": tokens(), "attention_mask": torch.ones(BATCH, 12, dtype=torch.long)}
    two = {"input_ids": tokens(), "decoder_input_ids": tokens()}
    label, causal = "ForSequenceClassification", {"use_cache": False}
    for kind in ("Bert", "Roberta", "DebertaV2"):
        yield network(kind, label, masked, **TEXT)
    for kind in ("Albert", "Electra"):
        yield network(kind, label, masked, embedding_size=16, **TEXT)
    yield network("DistilBert", label, masked, vocab_size=100, dim=32, n_layers=2, n_heads=4, hidden_dim=64)
    for kind in ("GPTNeoX", "Llama", "Mistral", "Qwen2", "Phi"):
        yield network(kind, "ForCausalLM", one, num_key_value_heads=2, **TEXT, **causal)
    yield network("Gemma", "ForCausalLM", one, num_key_value_heads=2, head_dim=8, **TEXT, **causal)
    yield network("GPT2", "LMHeadModel", one, vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=64, **causal)
    yield network("OPT", "ForCausalLM", one, vocab_size=100, hidden_size=32, word_embed_proj_dim=32, num_hidden_layers=2,
                  num_attention_heads=4, ffn_dim=64, max_position_embeddings=64, **causal)
    yield network("Bloom", "ForCausalLM", one, vocab_size=100, hidden_size=32, n_layer=2, n_head=4, **causal)
    yield network("Mamba", "ForCausalLM", one, vocab_size=100, hidden_size=32, state_size=8, num_hidden_layers=2, **causal)
    yield network("T5", "ForConditionalGeneration", two, vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2,
                  num_heads=4, decoder_start_token_id=0, **causal)
    yield network("Bart", "ForConditionalGeneration", two, max_position_embeddings=64, **SEQUENCES, **causal)
    yield from pixels_and_sounds(network)


def pixels_and_sounds(network: Callable[..., tuple[str, Network]]) -> Iterator[tuple[str, Network]]:
    small, large, head = {"pixel_values": image(32)}, {"pixel_values": image(64)}, "ForImageClassification"
    yield network("ViT", head, small, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                  image_size=32, patch_size=8)
    yield network("Swin", head, small, image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4],
                  window_size=4)
    yield network("MobileViT", head, large, image_size=64)
    yield network("ConvNextV2", head, large, hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1])
    yield network("Segformer", "ForSemanticSegmentation", large, hidden_sizes=[8, 16, 16, 32], decoder_hidden_size=32,
                  depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4])
    yield network("Wav2Vec2", "ForSequenceClassification", {"input_values": torch.randn(BATCH, 800)}, hidden_size=32,
                  num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, conv_dim=(16, 16), conv_stride=(5, 2),
                  conv_kernel=(10, 3), num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)
    yield network("Whisper", "ForAudioClassification", {"input_features": torch.randn(BATCH, 16, 100)}, num_mel_bins=16,
                  max_source_positions=50, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
                  **SEQUENCES)


def export(network: Network, form: str, path: Path) -> int:
    """Writes the file; the number of the network's parameters."""
    model = FirstOutput(network)
    with contextlib.redirect_stdout(io.StringIO()):  # the legacy exporter prints the graph that it cannot write
        exports.write(exports.Exported(model, tuple(network.inputs.values()), tuple(network.inputs), ("y",)), form, path)
    return sum(parameter.numel() for parameter in model.parameters())


def imported_output(program: Path, path: Path, inputs: dict[str, np.ndarray]) -> np.ndarray:
    for i, each in enumerate(onnx.load(str(path), load_external_data=False).graph.input):
        nodes.write_tensor(path.parent / f"input_{i}.pb", inputs[each.name])
    (path.parent / "list").write_text(f"{path.parent}\n")
    subprocess.run([program, path.parent / "list"], check=True)
    if (path.parent / "error.txt").exists():
        raise RuntimeError((path.parent / "error.txt").read_text())
    return nodes.read_outputs(path.parent)[0]


def trainable(program: Path, path: Path, inputs: dict[str, np.ndarray], output: np.ndarray) -> int:
    """Parameters that decent-train would train, after it tried a step."""
    data = path.parent / "data.safetensors"
    write_safetensors(data, {**inputs, "target": np.zeros(output.shape, np.float32)})
    recipe = {"model": {"path": str(path), "inputs": {name: name for name in inputs}, "target": "target", "loss": "mse"},
              "data": {"train": {"format": "safetensors", "path": str(data)}, "batch_size": BATCH}, "train": {"steps": 1}}
    (path.parent / "recipe.yaml").write_text(json.dumps(recipe))
    ended = subprocess.run([program, "--config", "recipe.yaml", "--dry-run"], cwd=path.parent, text=True,
                           capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if ended.returncode != 0:
        raise RuntimeError(ended.stderr)
    return next(int(line.split()[0]) for line in ended.stdout.splitlines() if "parameters to train" in line)


def check(options: argparse.Namespace, network: Network, form: str) -> tuple[str, bool]:
    """What there is to say, and whether all is well."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        try:
            parameters = export(network, form, path)
        except Exception as error:  # of many kinds
            return f"not exported: {(str(error).splitlines() or [''])[0][:80]}", True
        inputs = {name: tensor.numpy() for name, tensor in network.inputs.items()}
        try:
            ours, theirs = imported_output(options.run, path, inputs), inference.run(path, inputs)["y"]
            error = np.abs(ours - theirs).max() / np.abs(theirs).max()
            count = trainable(options.train, path, inputs, ours)
        except (RuntimeError, AssertionError, subprocess.CalledProcessError) as failure:
            return f"FAILED: {failure}", False
        size = len(onnx.load(str(path), load_external_data=False).graph.node)
        return f"{size:5} nodes, error {error:.1e}, trains {count} of {parameters}", bool(error <= MOST_ERROR)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=lambda path: Path(path).absolute(), required=True, help="the program onnx_run")
    parser.add_argument("--train", type=lambda path: Path(path).absolute(), required=True, help="the program decent-train")
    parser.add_argument("--forms", default="LN,D", help="which exports: D and LN; O and LT draw random numbers")
    parser.add_argument("networks", nargs="*", help="parts of names")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    good = True
    for name, network in [*vision(), *language()]:
        if options.networks and not any(part.lower() in name.lower() for part in options.networks):
            continue
        for form in options.forms.split(","):
            said, well = check(options, network, form)
            print(f"{name:28} {form:2} {said}", flush=True)
            good = good and well
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
