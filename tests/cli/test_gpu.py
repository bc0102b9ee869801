"""Training on a GPU, one: it learns what the CPU learns, two workers may share it, and runs go on from device to device.
Where there is no GPU, one made of host memory takes its place (tests/fake_gpu): it runs all of the program but CUDA, and
finds what is left on the wrong device.

The contract promises the same bits on the CPU only. On one GPU they are the same here, too, because the models have no
operator that adds up in an order of its own (see torch.use_deterministic_algorithms), each worker computes on one
stream, and CUBLAS_WORKSPACE_CONFIG gives cuBLAS a workspace that does not depend on what ran before.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gpus import ONE_GPU, WHY_NOT
import runs
from gpu_inputs import save_net, write_a_bad_sample
from runs import (DIGITS, DIGITS_CNN, DIGITS_MLP, Run, assert_same_run, assert_same_weights, assert_says, error_message,
                  merged, recipe)
from tensors import read_safetensors

pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"no GPU to test on: {WHY_NOT}")


def on(device: str, base: dict, **changes: object) -> dict:
    return merged(merged(base, {"model": {"device": device}}), changes)


def with_gpu(workers: int, variables: dict[str, object]) -> dict[str, object]:
    """With the GPU in sight, and a name for each worker's host so that NCCL lets them share it."""
    return {**ONE_GPU, "NCCL_SOCKET_IFNAME": "lo", **variables, "own": [{"NCCL_HOSTID": f"host-{rank}"} for rank in range(workers)]}


def attempt(folder: Path, recipe: dict, *flags: object, workers: int = 1, **variables: object) -> list:
    return runs.attempt(folder, recipe, *flags, workers=workers, **with_gpu(workers, variables))


def train(folder: Path, recipe: dict, *flags: object, workers: int = 1, **variables: object) -> Run:
    return runs.train(folder, recipe, *flags, workers=workers, **with_gpu(workers, variables))


def assert_close(a: Run, b: Run, rtol: float, first_step: int = 1) -> None:
    """The losses, from a step on."""
    np.testing.assert_allclose(a.losses[first_step - 1 :], b.losses[first_step - 1 :], rtol=rtol)


# As configs/digits.yaml.
DIGITS_RUN = recipe(
    data={"batch_size": 16}, train={"steps": None, "epochs": 20},
    optimizer={"name": "adamw", "lr": 0.01, "weight_decay": 1.0},
    schedule={"name": "cosine_warmup", "warmup_steps": 20}, parallel={"topology": "ring"},
    eval={"every_epochs": 20})
SHORT = recipe(DIGITS_MLP, eval={"every_steps": 4}, parallel={"bucket_mb": 0.02})
ACCURACY = 0.95


def test_learns_what_the_cpu_learns(tmp_path: Path) -> None:
    import torch

    cpu = train(tmp_path / "cpu", on("cpu", DIGITS_RUN))
    cuda = train(tmp_path / "cuda", on("cuda", DIGITS_RUN))
    assert cpu.evaluation["accuracy"] >= ACCURACY
    assert abs(cuda.evaluation["accuracy"] - cpu.evaluation["accuracy"]) <= 0.02
    assert "device   cuda (" in cuda.ended[0].out and "device   cpu" in cpu.ended[0].out
    # The files are for any machine.
    model = torch.jit.load(str(cuda.folder / "model.pt"))
    assert {tensor.device.type for tensor in model.state_dict().values()} == {"cpu"}
    for name, tensor in model.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), cuda.weights[name])


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd", "accum_adam", "accum_adamw", "adagrad", "nadam", "radam"])
def test_every_optimizer_takes_the_same_steps(optimizer: str, tmp_path: Path) -> None:
    """With clipping, gradients of two micro-batches, mixing in between, and averages that are reverted."""
    settings = merged(SHORT, {"optimizer": {"name": optimizer, "lr": 0.002}, "train": {"grad_accumulation": 2},
                              "parallel": {"grad_clip_norm": 0.5, "backend": "gloo"}})
    cpu, cuda = (train(tmp_path / device, on(device, settings), workers=2) for device in ("cpu", "cuda"))
    assert_close(cpu, cuda, rtol=1e-4)
    assert len(cpu.lines("eval")) == 3
    for ours, theirs in zip(cpu.lines("eval"), cuda.lines("eval"), strict=True):
        assert ours["samples"] == theirs["samples"]
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-4)
        assert ours["consensus_distance"] == pytest.approx(theirs["consensus_distance"], rel=1e-2)


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_mixed_precision(dtype: str, tmp_path: Path) -> None:
    run = train(tmp_path, on("cuda", DIGITS_RUN, amp={"dtype": dtype}))
    assert run.evaluation["accuracy"] >= ACCURACY
    scales = [line.get("loss_scale") for line in run.lines("train")]
    assert (set(scales) == {None}) == (dtype == "bf16")


def test_an_overflow_skips_the_step(tmp_path: Path) -> None:
    run = train(tmp_path, on("cuda", SHORT, amp={"dtype": "fp16", "init_scale": 2.0**40, "backoff_factor": 0.25}))
    scales = [line["loss_scale"] for line in run.lines("train")]
    assert scales[0] == 2.0**40 and scales[-1] < 2.0**30
    assert np.isfinite(list(run.weights.values())[0]).all()


def test_channels_last(tmp_path: Path) -> None:
    plain, last = (train(tmp_path / form, on("cuda", recipe(DIGITS_CNN), model={"memory_format": form}))
                   for form in ("contiguous", "channels_last"))
    assert_close(plain, last, rtol=2e-2)  # convolutions in other algorithms


@pytest.fixture(scope="module")
def by_gloo(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two workers on one GPU, whose weights go through the memory of the host."""
    return train(tmp_path_factory.mktemp("gloo"), on("cuda", SHORT, parallel={"backend": "gloo"}), workers=2)


def test_two_workers_by_gloo(by_gloo: Run, tmp_path: Path) -> None:
    assert_close(by_gloo, train(tmp_path, on("cpu", SHORT), workers=2), rtol=1e-4)
    assert "exchange by gloo" in by_gloo.ended[0].out


def test_two_workers_by_nccl(by_gloo: Run, tmp_path: Path) -> None:
    """A pair exchanges, and a sum of two numbers has one order: the same bits whatever carries them."""
    by_nccl = train(tmp_path, on("cuda", SHORT, parallel={"backend": "nccl"}), workers=2)
    assert "exchange by nccl" in by_nccl.ended[0].out
    assert_same_run(by_gloo, by_nccl)


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
def test_three_workers_in_one_edge(backend: str, tmp_path: Path) -> None:
    """All-reduces, also of rounded weights."""
    settings = merged(SHORT, {"parallel": {"comm_dtype": "bf16", "topology": "complete"}})
    cuda = train(tmp_path / "cuda", on("cuda", settings, parallel={"backend": backend}), workers=3)
    assert_close(cuda, train(tmp_path / "cpu", on("cpu", settings), workers=3), rtol=1e-3)


def test_auto(tmp_path: Path) -> None:
    """A GPU for one worker; with fewer GPUs than workers the CPU, which is told."""
    alone = train(tmp_path / "alone", SHORT)
    assert "device   cuda (" in alone.ended[0].out
    crowd = train(tmp_path / "crowd", SHORT, workers=2)
    assert "device   cpu, exchange by shared memory" in crowd.ended[0].out
    assert "\nnote     " in crowd.ended[0].out


def test_dry_run(tmp_path: Path) -> None:
    ended = attempt(tmp_path, on("cuda", SHORT), "--dry-run")
    assert ended[0].code == 0 and "device     cuda (" in ended[0].out


# ---- checkpoints -----------------------------------------------------------------------------------------------------

SAVING = merged(SHORT, {"checkpoint": {"every_steps": 6}, "optimizer": {"name": "accum_adamw", "accum_iter": 4}})


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
def test_resumed_is_as_never_stopped(backend: str, tmp_path: Path) -> None:
    settings = on("cuda", SAVING, parallel={"backend": backend})
    whole = train(tmp_path / "whole", settings, workers=2)
    first = train(tmp_path / "twice", settings, workers=2)
    assert_same_run(whole, first)
    resumed = train(tmp_path / "twice", settings, "--resume", first.checkpoint(6), workers=2)
    assert_same_run(whole, resumed)


def test_resumed_with_dropout_and_a_loss_scale(model, data, tmp_path: Path) -> None:
    """Random numbers on the GPU, too, depend on seed, rank and step alone."""
    settings = on("cuda", recipe(model("dropout_norm"), data("blob"), checkpoint={"every_steps": 6},
                                 amp={"dtype": "fp16", "init_scale": 2.0**20, "growth_interval": 2}))
    whole = train(tmp_path, settings)
    before = whole.weights, whole.metrics_without_times
    resumed = train(tmp_path, settings, "--resume", whole.checkpoint(6))
    assert resumed.metrics_without_times == before[1]
    for name, tensor in before[0].items():
        np.testing.assert_array_equal(resumed.weights[name], tensor)
    assert len({line["loss"] for line in whole.lines("train")}) == 12


@pytest.mark.parametrize(("then", "now"), [("cuda", "cpu"), ("cpu", "cuda")])
def test_goes_on_on_another_device(then: str, now: str, tmp_path: Path) -> None:
    whole = train(tmp_path, on(then, SAVING))
    losses = whole.losses
    resumed = train(tmp_path, on(now, SAVING), "--resume", whole.checkpoint(6))
    assert f"changed since: the device was {then}, is {now}" in resumed.ended[0].out
    np.testing.assert_array_equal(resumed.losses[:6], losses[:6])
    np.testing.assert_allclose(resumed.losses[6:], losses[6:], rtol=1e-4)


def test_a_checkpoint_holds_the_same_on_both(tmp_path: Path) -> None:
    """Names, shapes, order and types, and values as far as they are computed alike."""
    files = [read_safetensors(train(tmp_path / device, on(device, SAVING)).checkpoint(6) / "rank-0000.safetensors")
             for device in ("cpu", "cuda")]
    assert list(files[0]) == list(files[1])
    for name, tensor in files[0].items():
        assert (tensor.shape, tensor.dtype) == (files[1][name].shape, files[1][name].dtype)
        np.testing.assert_allclose(files[1][name], tensor, rtol=1e-2, atol=1e-4)


def test_eval_only_and_export(tmp_path: Path) -> None:
    run = train(tmp_path, on("cuda", SAVING), workers=2)
    for device in ("cuda", "cpu"):
        ended = attempt(tmp_path, on(device, SAVING), "--eval-only", "--export", f"{device}.safetensors", workers=2)
        assert [e.code for e in ended] == [0, 0], ended
    *_, in_training, on_cuda, on_cpu = [line for line in run.metrics if line["kind"] == "eval"]
    assert on_cuda["accuracy"] == in_training["accuracy"] and on_cpu["samples"] == in_training["samples"]
    assert on_cuda["loss"] == pytest.approx(in_training["loss"], rel=1e-6)
    assert on_cpu["loss"] == pytest.approx(in_training["loss"], rel=1e-4)
    exported = [read_safetensors(tmp_path / f"{device}.safetensors") for device in ("cuda", "cpu")]
    for name, tensor in exported[0].items():
        np.testing.assert_array_equal(exported[1][name], tensor)


# ---- what only goes wrong on a GPU -----------------------------------------------------------------------------------

def with_a_bad_sample(folder: Path, model: Path, sample: int, label: int = 0, pixel: float = 0.0) -> dict:
    write_a_bad_sample(folder / "data.safetensors", sample, label, pixel)
    return recipe(model, folder / "data.safetensors", train={"steps": 50},
                  data={"shuffle": False, "batch_size": 4, "eval": DIGITS["test"]})


@pytest.mark.parametrize("sample", [0, 137])  # the trial batch at the start meets it, or training does
@pytest.mark.parametrize("wrong", [10, -1])
def test_a_class_out_of_range_is_named(wrong: int, sample: int, tmp_path: Path) -> None:
    """A kernel that met it would take the GPU from the process."""
    ended = attempt(tmp_path, on("cuda", with_a_bad_sample(tmp_path, DIGITS_MLP, sample, label=wrong)))
    assert ended[0].code == 2, ended[0].err
    assert_says(ended[0].err, f"the target has class {wrong}, the model's output has 10 classes: 0 to 9")


@pytest.mark.parametrize("sample", [0, 137])
def test_an_index_out_of_range_is_explained(sample: int, tmp_path: Path) -> None:
    save_net("index", tmp_path / "net.pt")
    ended = attempt(tmp_path, on("cuda", with_a_bad_sample(tmp_path, tmp_path / "net.pt", sample, pixel=99)))
    assert ended[0].code == 2, ended[0].err
    assert_says(ended[0].err, "device-side assert", "out of range", "model.device: cpu")


def test_tensors_made_on_the_cpu_are_explained(tmp_path: Path) -> None:
    save_net("cpu", tmp_path / "net.pt")
    message = error_message(attempt(tmp_path, on("cuda", recipe(tmp_path / "net.pt"))))
    assert_says(message, "1 x arange", "device=x.device", "model.device: cpu")
    train(tmp_path / "cpu", on("cpu", recipe(tmp_path / "net.pt")))


@pytest.mark.parametrize("kind", ["constant", "attention"])
def test_constants_of_a_recorded_model_come_along(kind: str, tmp_path: Path) -> None:
    import torch

    save_net(kind, tmp_path / "net.pt")
    run = train(tmp_path / "run", on("cuda", recipe(tmp_path / "net.pt")))
    model = torch.jit.load(str(run.folder / "model.pt"))
    assert model(torch.zeros(2, 1, 8, 8)).device.type == "cpu"
    assert_close(run, train(tmp_path / "cpu", on("cpu", recipe(tmp_path / "net.pt"))), rtol=1e-4)


@pytest.mark.parametrize("ending", [".onnx", ".pt2"])
def test_an_export_is_checked_where_the_model_is(ending: str, tmp_path: Path) -> None:
    """In its memory format and without what makes a GPU fast: cuDNN's algorithms may differ by more than the check allows."""
    settings = on("cuda", recipe(DIGITS_CNN.with_suffix(ending)), model={"memory_format": "channels_last", "fast_math": True})
    assert (train(tmp_path, settings).folder / f"model{ending}").exists()


def test_want_of_memory_is_told(tmp_path: Path) -> None:
    settings = on("cuda", SHORT, data={"batch_size": 8})
    ended = attempt(tmp_path, settings, PYTORCH_ALLOC_CONF="per_process_memory_fraction:0.0000001",
                    DECENT_FAKE_GPU_MB="0.03")
    assert ended[0].code == 2, ended[0].err
    assert_says(ended[0].err, "out of memory", "data.batch_size")


def test_memory_of_the_gpu_is_told(tmp_path: Path) -> None:
    dry = {device: attempt(tmp_path / device, on(device, SHORT), "--dry-run")[0] for device in ("cpu", "cuda")}
    assert dry["cpu"].code == dry["cuda"].code == 0, dry["cuda"].err
    assert "peak of the GPU likewise: " in dry["cuda"].out and "GPU" not in dry["cpu"].out
    lines = train(tmp_path / "run", on("cuda", SHORT)).lines("train")
    assert lines and all(0 < line["gpu_memory_mb"] < 1 << 20 for line in lines)
    assert "gpu_memory_mb" not in train(tmp_path / "cpu-run", on("cpu", SHORT)).lines("train")[0]


def test_traces_of_a_gpu(tmp_path: Path) -> None:
    run = train(tmp_path, on("cuda", SHORT, log={"trace": [3, 5]}, parallel={"backend": "nccl"}), workers=2)
    names = {event["name"].split()[0]
             for event in json.loads(next(run.folder.glob("trace*0000.json")).read_text())["traceEvents"]}
    assert {"forward", "backward", "wait", "exchange"} <= names
    untraced = train(tmp_path / "untraced", on("cuda", SHORT, parallel={"backend": "nccl"}), workers=2)
    assert_same_weights(run, untraced)
