#include "decent/parallel/gradient_hooks.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

namespace decent {
namespace {

class Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(std::function<void(std::size_t)> ready, std::size_t parameter)
      : ready_(std::move(ready)), parameter_(parameter) {}
  void operator()(const at::Tensor&) override { ready_(parameter_); }

 private:
  std::function<void(std::size_t)> ready_;
  std::size_t parameter_;
};

}  // namespace

GradientHooks::GradientHooks(const NamedTensors& parameters, std::function<void(std::size_t)> ready)
    : parameters_(parameters) {
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameters_[p].second,
                                                   std::make_unique<Hook>(ready, p));
  }
}

GradientHooks::~GradientHooks() {
  for (const auto& [name, tensor] : parameters_)
    torch::autograd::impl::set_post_acc_grad_hooks(tensor, nullptr);
}

void call_at_end_of_backward(std::function<void()> action) {
  torch::autograd::Engine::get_default_engine().queue_callback(std::move(action));
}

}  // namespace decent
