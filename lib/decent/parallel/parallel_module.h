#pragma once
// A module whose parameters are trained by TrainedParameters: what DecentralizedDataParallel and
// DistributedDataParallel have in common.
//
// This header includes nothing of torch::nn or torch::jit; a program that has such a module does.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/parallel/named_tensors.h"

namespace torch::nn {
class Module;
}

namespace decent {

namespace detail {

// A holder or pointer is dereferenced; a torch::jit::Module is itself the module.
template <typename Module>
decltype(auto) module_of(Module& module) {
  if constexpr (requires { module->named_parameters(); }) {
    return *module;
  } else {
    return (module);
  }
}

// Names and tensors of a torch::jit list, a torch::nn dictionary or a list of pairs; each tensor
// once, under its first name.
template <typename List>
NamedTensors named_once(const List& list) {
  NamedTensors tensors;
  std::set<const void*> seen;
  for (const auto& entry : list) {
    const auto& [name, tensor] = [&]() -> std::pair<std::string, at::Tensor> {
      if constexpr (requires { entry.key(); }) {
        return {entry.key(), entry.value()};
      } else if constexpr (requires { entry.name; }) {
        return {entry.name, entry.value};
      } else {
        return entry;
      }
    }();
    if (tensor.defined() && seen.insert(tensor.unsafeGetTensorImpl()).second) {
      tensors.emplace_back(name, tensor);
    }
  }
  return tensors;
}

}  // namespace detail

/// `Parameters` is a TrainedParameters, which documents step(), get_lr(), set_accumulate_grad(),
/// global_avg() and revert_global_avg(), threads, and which calls are collective.
template <typename Module, typename Parameters>
class ParallelModule : public Parameters {
 public:
  /// As in TrainedParameters. Buffers that the module's forward replaces by new tensors
  /// (self.count = self.count + 1 in TorchScript) are averaged and restored, too.
  std::optional<double> global_avg(bool will_revert = true, bool return_distance = false) override {
    settle_buffers(buffers_, named_buffers());
    return Parameters::global_avg(will_revert, return_distance);
  }
  void revert_global_avg() override {
    settle_buffers(buffers_, named_buffers());
    Parameters::revert_global_avg();
  }

  /// As in TrainedParameters, plus parameters that are not trained as "model.<name>" and
  /// buffers as "buffer.<name>".
  NamedTensors training_state() const override {
    settle_buffers(buffers_, named_buffers());
    NamedTensors state = Parameters::training_state();
    for (auto& entry : model_tensors(untrained_part(named_parameters()), buffers_))
      state.push_back(std::move(entry));
    return state;
  }

  /// The module's own forward.
  template <typename... Arguments>
  auto forward(Arguments&&... arguments) {
    return detail::module_of(module_).forward(std::forward<Arguments>(arguments)...);
  }

  void train(bool on = true) { detail::module_of(module_).train(on); }
  void eval() { detail::module_of(module_).eval(); }

  /// Every parameter once, trained or not, in order of registration.
  NamedTensors named_parameters() const {
    return detail::named_once(detail::module_of(module_).named_parameters());
  }
  NamedTensors named_buffers() const { return buffers_of(module_); }
  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> tensors;
    for (auto& [name, tensor] : named_parameters()) tensors.push_back(tensor);
    return tensors;
  }

  /// The module that was given to the constructor; it shares its tensors with this object.
  Module& module() { return module_; }

 protected:
  template <typename Options>
  ParallelModule(Module module, std::shared_ptr<Communicator> communicator, Options options)
      : ParallelModule(buffers_of(module), std::move(module), std::move(communicator),
                       std::move(options)) {}

 private:
  static_assert(!std::is_base_of_v<torch::nn::Module, Module>,
                "a torch::nn::Module is not copied: give a std::shared_ptr to it, or its holder "
                "(TORCH_MODULE)");

  static NamedTensors buffers_of(const Module& module) {
    return detail::named_once(detail::module_of(module).named_buffers());
  }

  // Takes references, so that nothing is moved before all arguments are computed.
  template <typename Options>
  ParallelModule(NamedTensors buffers, Module&& module, std::shared_ptr<Communicator> communicator,
                 Options&& options)
      : Parameters(detail::named_once(detail::module_of(module).named_parameters()), buffers,
                   std::move(communicator), std::move(options)),
        module_(std::move(module)),
        buffers_(std::move(buffers)) {}

  Module module_;
  NamedTensors buffers_;  // as they were taken over
};

}  // namespace decent
