"""model.lora beside PEFT: networks of transformers and torchvision in three formats, from the same A and B; PEFT reads what is written."""

from __future__ import annotations

import functools
import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

os.environ["HF_HUB_OFFLINE"] = "1"  # before its packages are imported

import peft
import torchvision
import transformers

from runs import Run, recipe, train
from tensors import read_safetensors, write_safetensors

STEPS, BATCH, LENGTH, TOKENS, CLASSES, RANK, ALPHA, LR = 20, 4, 12, 61, 5, 4, 10.0, 0.05
PREFIX = "base_model.model."


class Logits(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=x, use_cache=False).logits


def gpt2() -> nn.Module:
    return Logits(transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=TOKENS, n_positions=LENGTH, n_embd=32, n_layer=2, n_head=2, attn_pdrop=0, embd_pdrop=0, resid_pdrop=0,
        bos_token_id=0, eos_token_id=0, attn_implementation="eager")))


def llama() -> nn.Module:
    return Logits(transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=TOKENS, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=LENGTH, tie_word_embeddings=False, attn_implementation="eager")))


def vit() -> nn.Module:
    net = torchvision.models.VisionTransformer(image_size=16, patch_size=4, num_layers=2, num_heads=2, hidden_dim=32, mlp_dim=64,
                                               num_classes=CLASSES)
    nn.init.normal_(net.heads.head.weight, std=0.2)  # zero as torchvision makes it, so that nothing would reach the layers below
    return net


@dataclass(frozen=True)
class Network:
    make: object
    targets: tuple[str, ...]  # PEFT's target_modules
    match: tuple[str, ...]  # the same as globs of parameters
    whole: tuple[str, ...] = ()  # modules that train as a whole


NETWORKS = {
    "gpt2": Network(gpt2, ("c_attn", "c_fc", "wpe"), ("*c_attn.weight", "*c_fc.weight", "*wpe.weight")),  # Conv1D, embedding
    "llama": Network(llama, ("q_proj", "v_proj", "down_proj"), ("*q_proj.*", "*v_proj.*", "*down_proj.weight"), ("lm_head",)),
    "vit": Network(vit, ("conv_proj", "mlp.0", "mlp.3"), ("conv_proj.weight", "*mlp.0.weight", "*mlp.3.weight"), ("heads.head",)),
}


@functools.cache
def base(name: str) -> nn.Module:
    torch.manual_seed(5)
    return NETWORKS[name].make()


def fresh(name: str) -> nn.Module:
    """Another network with the same weights."""
    base(name)
    net = NETWORKS[name].make()
    net.load_state_dict(base(name).state_dict())
    return net


def with_peft(name: str) -> nn.Module:
    """With random A and B."""
    of, net = NETWORKS[name], fresh(name)
    torch.manual_seed(6)
    config = peft.LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=list(of.targets), modules_to_save=list(of.whole) or None,
                             init_lora_weights=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PEFT sets fan_in_fan_out by itself
        net = peft.PeftModel(net, config)
    with torch.no_grad():
        for key, value in net.named_parameters():
            if "lora_" in key:
                value.mul_(0.1 / value.std())
    return net.train()


def adapters_of(net: nn.Module) -> dict[str, np.ndarray]:
    """Those of PEFT as model.lora has them, by PEFT's definitions: B A of a linear layer, transposed for Conv1D and an embedding."""
    tensors = {}
    for key, module in net.named_modules():
        name = f"{key.removeprefix(PREFIX)}.weight"
        if isinstance(module, peft.tuners.lora.Embedding):
            a, b = module.lora_embedding_B["default"].T, module.lora_embedding_A["default"].T
        elif isinstance(module, peft.tuners.lora.LoraLayer):
            a, b = module.lora_A["default"].weight.flatten(1), module.lora_B["default"].weight.flatten(1)
            if getattr(module, "fan_in_fan_out", False):
                a, b = b.T, a.T
        else:
            continue
        tensors |= {f"{name}.lora_A": a, f"{name}.lora_B": b}
    for key, value in net.named_parameters():
        if ".modules_to_save." in key:
            tensors[key.removeprefix(PREFIX).replace(".modules_to_save.default", "")] = value
    return {name: value.detach().contiguous().numpy() for name, value in tensors.items()}


@functools.cache
def data_of(name: str) -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    number = STEPS * BATCH
    if name == "vit":
        return {"x": random.normal(size=(number, 3, 16, 16)).astype(np.float32), "y": random.integers(0, CLASSES, number)}
    tokens = random.integers(0, TOKENS, (number, LENGTH + 1))
    return {"x": tokens[:, :-1].copy(), "y": tokens[:, 1:].copy()}


@functools.cache
def trained_by_peft(name: str) -> tuple[list[float], nn.Module]:
    net, data = with_peft(name), data_of(name)
    optimizer = torch.optim.SGD([each for each in net.parameters() if each.requires_grad], lr=LR, momentum=0.9)
    losses = []
    for x, y in zip(torch.tensor(data["x"]).split(BATCH), torch.tensor(data["y"]).split(BATCH)):
        output = net(x)
        loss = nn.functional.cross_entropy(output.flatten(0, -2), y.flatten())
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses, net.eval()


def export(name: str, form: str, path: Path) -> None:
    net, x = fresh(name).train(), torch.tensor(data_of(name)["x"][:BATCH])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporters, about what is constant
        if form == ".pt":
            torch.jit.trace(net, (x,)).save(str(path))
        elif form == ".pt2":
            torch.export.save(torch.export.export(net, (x,)), path)
        else:
            torch.onnx.export(net, (x,), str(path), input_names=["x"], dynamo=True, optimize=False, external_data=False, verbose=False)


def run(name: str, form: str, folder: Path) -> Run:
    export(name, form, folder / f"net{form}")
    write_safetensors(folder / "data.safetensors", data_of(name))
    start = adapters_of(with_peft(name))
    if form == ".pt":  # whose buffers are all of the network's
        start |= {key: value.numpy() for key, value in fresh(name).named_buffers()}
    write_safetensors(folder / "start.safetensors", start)
    of = NETWORKS[name]
    lora = {"match": list(of.match), "rank": RANK, "alpha": ALPHA, "train": [f"*{each}.*" for each in of.whole],
            "adapters": str(folder / "start.safetensors")}
    return train(folder, recipe(folder / f"net{form}", folder / "data.safetensors", model={"lora": lora}, train={"steps": STEPS},
                                data={"shuffle": False, "eval": None, "batch_size": BATCH},
                                optimizer={"name": "sgd", "lr": LR, "momentum": 0.9, "weight_decay": 0.0}))


@pytest.mark.parametrize("form", [".pt", ".pt2", ".onnx"])
@pytest.mark.parametrize("name", NETWORKS)
def test_follows_peft(name: str, form: str, tmp_path: Path) -> None:
    losses, theirs = trained_by_peft(name)
    ours = run(name, form, tmp_path)
    np.testing.assert_allclose(ours.losses, losses, rtol=1e-5)  # float32, in another order
    adapters, start = read_safetensors(ours.folder / "adapters.safetensors"), read_safetensors(tmp_path / "start.safetensors")
    for key, value in adapters_of(theirs).items():  # float32, in another order; of the way that they were trained
        np.testing.assert_allclose(adapters[key], value, rtol=0, atol=1e-3 * np.abs(value - start[key]).max(), err_msg=key)
    x = torch.tensor(data_of(name)["x"][:BATCH])
    merged = torch.jit.load(str(ours.folder / "model.pt"))(x)
    torch.testing.assert_close(merged, theirs(x), rtol=1e-3, atol=1e-4)
    loaded = peft.PeftModel.from_pretrained(fresh(name), str(ours.folder / "adapters")).eval()
    torch.testing.assert_close(loaded(x), merged, rtol=1e-4, atol=1e-5)
    assert (fresh(name).eval()(x) - merged).abs().max() > 0.01  # the base alone gives others
