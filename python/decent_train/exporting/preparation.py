"""What is settled about a module and its example before anything is written."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from .error import ExportError
from .inputs import Example
from .reference import Reference
from .traps import hooks_after_gradients, hooks_on_forward, some

# Class of a wrapper -> (its attribute that holds the module, what stands in for the wrapper here).
_WRAPPERS = {
    "torch._dynamo.eval_frame.OptimizedModule": ("_orig_mod", "torch.compile"),
    "torch.nn.parallel.data_parallel.DataParallel": ("module", "DataParallel"),
    "torch.nn.parallel.distributed.DistributedDataParallel": ("module", "DistributedDataParallel"),
}


def unwrapped(module: nn.Module, notes: list[str]) -> nn.Module:
    """The module inside of torch.compile, DataParallel and DistributedDataParallel."""
    if not isinstance(module, nn.Module):
        raise ExportError(f"the first argument is of type {type(module).__name__}: give a torch.nn.Module")
    if isinstance(module, torch.jit.ScriptModule):
        raise ExportError("the module is TorchScript already: module.train() and module.save('model.pt') write it")
    while (wrapper := _WRAPPERS.get(f"{type(module).__module__}.{type(module).__qualname__}")) is not None:
        module = getattr(module, wrapper[0])
        notes.append(f"exported is the module inside of {wrapper[1]}")
    return module


def on_the_cpu(module: nn.Module, notes: list[str]) -> nn.Module:
    """The module, or a copy on the CPU if it is elsewhere; hooks of its parameters are those of the copy, too."""
    if all(each.device.type in ("cpu", "meta") for each in _tensors(module)):
        return module
    result = copy.deepcopy(module)
    for name, parameter in module.named_parameters():
        for hook in (parameter._backward_hooks or {}).values():
            result.get_parameter(name).register_hook(hook)
    notes.append("the module is on a GPU: a copy of it on the CPU was exported and compared")
    return result.cpu()


def refuse_early(module: nn.Module) -> None:
    """Raises ExportError for modules that no file can hold."""
    _refuse_tensors("tensors on the device 'meta', which have no values: load the weights first (to_empty, "
                    "load_state_dict)", [name for name, each in _named_tensors(module) if each.device.type == "meta"])
    _refuse_tensors("tensors of lazy modules, which have no shape yet: call the module once with a batch before the "
                    "export", [name for name, each in _named_tensors(module) if is_lazy(each)])
    _refuse_tensors("complex parameters: keep the real and the imaginary part as two parameters, and join them in "
                    "forward by torch.complex", [name for name, each in module.named_parameters() if each.is_complex()])
    _refuse_tensors("sparse or quantized tensors: training needs plain ones", [
        name for name, each in _named_tensors(module) if each.layout != torch.strided or each.is_quantized])
    _refuse_tensors("parameters of 16 bits: training needs float32 or float64. Export module.float(), and give the "
                    "recipe amp.dtype (bf16, fp16) for a forward in 16 bits", [
                        name for name, each in module.named_parameters()
                        if each.is_floating_point() and each.element_size() < 4])
    parameters = list(module.parameters())
    if not any(each.requires_grad for each in parameters):
        what = "all of its parameters have requires_grad=False" if parameters else "it has no parameters"
        raise ExportError(f"nothing in the module would train: {what}")
    hooks = hooks_after_gradients(module)
    if hooks:
        raise ExportError(f"a file does not hold {some(hooks)}: remove the handle for the export. The recipe's "
                          "optimizer and grad_clip_norm do what such hooks are for")


def usable(example: Example, dynamic_batch: bool, notes: list[str]) -> Example:
    """With two samples at least, where the batch is to be free, and without constant floating-point inputs."""
    if dynamic_batch and example.batch == 1:
        example = example.sized(2)
        notes.append("the example has one sample, which exporters take for a fixed size: it was repeated")
    if not dynamic_batch:
        notes.append(f"the file takes batches of {example.batch} samples only: set data.batch_size and "
                     f"data.eval_batch_size to {example.batch}, and let the number of samples be a multiple of it")
    return example.varied()


def frozen_names(module: nn.Module) -> list[str]:
    return [name for name, each in module.named_parameters() if not each.requires_grad]


def notes_of(reference: Reference) -> list[str]:
    """What the user should know whatever is written."""
    module = reference.module
    result = []
    if reference.kept_in_eval:
        result.append(f"these layers were in eval mode while the module was in train mode, and stay so: "
                      f"{some(map(repr, reference.kept_in_eval))}")
    if frozen := frozen_names(module):
        result.append(f"{len(frozen)} parameters have requires_grad=False and do not train: {some(map(repr, frozen))}")
    if hooks := hooks_on_forward(module):
        result.append(f"the file holds what these do to tensors, and not their other effects: {some(hooks)}")
    if reference.counters:
        result.append(f"the file does not hold {some(reference.counters)}, on which no output depends")
    if reference.mixes_samples():
        result.append("in eval mode the output of a sample depends on the other samples of its batch: if that is not "
                      "meant, dimension 0 of an input is not the batch (batch_first=True)")
    if reference.gradient_traps:
        result.append("the file holds operators alone, whose gradients are the same here as with "
                      f"{some(reference.gradient_traps)}")
    return result


def _refuse_tensors(what: str, names: list[str]) -> None:
    if names:
        kind, _, advice = what.partition(": ")
        raise ExportError(f"the module has {kind} ({some(map(repr, names))}): {advice}")


def _named_tensors(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from module.named_parameters()
    yield from module.named_buffers()


def _tensors(module: nn.Module) -> Iterator[Tensor]:
    return (each for _, each in _named_tensors(module))
