#include "decent/model/adapters.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <set>

#include "decent/core/error.h"
#include "decent/core/extent.h"
#include "decent/core/text.h"

namespace decent {
namespace {

using Place = std::function<void(const at::Tensor&)>;

Extent memory_of(const at::Tensor& tensor) {
  return extent_of(tensor.const_data_ptr(), tensor.sizes(), tensor.strides(),
                   static_cast<std::size_t>(tensor.element_size()));
}

bool is_same_view(const at::Tensor& a, const at::Tensor& b) {
  return a.const_data_ptr() == b.const_data_ptr() && a.scalar_type() == b.scalar_type() &&
         a.sizes() == b.sizes() && a.strides() == b.strides();
}

// Finds everything in a module that holds certain tensors: attributes, but also elements of lists,
// tuples and dictionaries, such as _flat_weights of torch.nn.LSTM. In a file such a second holder
// may have become a tensor of its own with the same memory.
class Holders {
 public:
  explicit Holders(std::vector<Adapter>& adapters) : adapters_(adapters) {}

  void visit(const c10::IValue& value, const Place& place) {
    if (value.isTensor()) return note(value.toTensor(), place);
    if (value.isObject()) return visit_object(value.toObject());
    if (value.isList()) return visit_list(value.toList());
    if (value.isTuple()) return visit_tuple(value.toTuple());
    if (value.isGenericDict()) visit_dict(value.toGenericDict());
  }

 private:
  void note(const at::Tensor& tensor, const Place& place) {
    if (!tensor.defined() || !tensor.has_storage() || tensor.numel() == 0) return;
    const Extent extent = memory_of(tensor);
    for (Adapter& each : adapters_) {
      if (!extent.overlaps(memory_of(each.weight))) continue;
      if (is_same_view(tensor, each.weight)) {
        each.places.push_back(place);
      } else {
        throw UserError("the model holds " + in_quotes(each.name) +
                        " a second time, as another view of the same memory, which an adapter "
                        "would not change.\nExport the model without that view (tensor.clone())");
      }
    }
  }

  void visit_object(const c10::intrusive_ptr<c10::ivalue::Object>& object) {
    if (!seen_.insert(object.get()).second) return;
    for (std::size_t slot = 0; slot < object->slots().size(); ++slot) {
      visit(object->getSlot(slot),
            [object, slot](const at::Tensor& tensor) { object->setSlot(slot, tensor); });
    }
  }

  void visit_list(const c10::List<c10::IValue>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      visit(list.get(i), [list, i](const at::Tensor& tensor) { list.set(i, tensor); });
    }
  }

  void visit_tuple(const c10::intrusive_ptr<c10::ivalue::Tuple>& tuple) {
    for (std::size_t i = 0; i < tuple->elements().size(); ++i) {
      visit(tuple->elements()[i],
            [tuple, i](const at::Tensor& tensor) { tuple->unsafeSetElement(i, tensor); });
    }
  }

  void visit_dict(const c10::Dict<c10::IValue, c10::IValue>& dict) {
    for (const auto& entry : dict) {
      visit(entry.value(), [dict, key = entry.key()](const at::Tensor& tensor) {
        dict.insert_or_assign(key, tensor);
      });
    }
  }

  std::vector<Adapter>& adapters_;
  std::set<const void*> seen_;
};

}  // namespace

Adapters::Adapters(const torch::jit::Module& module, const NamedTensors& weights,
                   const AdapterOptions& options)
    : scale_(options.alpha / static_cast<double>(options.rank)) {
  const at::NoGradGuard no_grad;
  at::Generator generator = at::detail::createCPUGenerator(options.seed);
  for (const auto& [name, weight] : weights) {
    const std::int64_t out = weight.size(0);
    const std::int64_t in = weight.numel() / out;
    const double bound = 1 / std::sqrt(static_cast<double>(in));
    const auto dtype = weight.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    all_.push_back({.name = name,
                    .weight = weight,
                    .a = at::empty({options.rank, in}, dtype).uniform_(-bound, bound, generator),
                    .b = at::zeros({out, options.rank}, dtype),
                    .places = {}});
    all_.back().a.requires_grad_();
    all_.back().b.requires_grad_();
  }
  Holders(all_).visit(module._ivalue(), [](const at::Tensor&) {});
  remove();  // from now on all places hold one and the same tensor
}

at::Tensor Adapters::sum_of(const Adapter& adapter) const {
  const at::Tensor& weight = adapter.weight;
  if (weight.dim() == 2 && weight.scalar_type() == adapter.a.scalar_type())
    return at::addmm(weight, adapter.b, adapter.a, 1, scale_);
  const at::Tensor product = at::mm(adapter.b, adapter.a).view(weight.sizes());
  return at::add(weight, product.to(weight.scalar_type()), scale_);
}

void Adapters::apply() {
  if (is_merged()) return;
  std::vector<at::Tensor> sums;
  sums.reserve(all_.size());
  for (const Adapter& adapter : all_) sums.push_back(sum_of(adapter));
  for (std::size_t i = 0; i < all_.size(); ++i)
    for (const auto& place : all_[i].places) place(sums[i]);
}

void Adapters::remove() {
  if (is_merged()) return;
  for (const Adapter& adapter : all_)
    for (const auto& place : adapter.places) place(adapter.weight);
}

void Adapters::merge() {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> originals;
  originals.reserve(all_.size());
  for (const Adapter& adapter : all_) originals.push_back(adapter.weight.clone());
  originals_ = std::move(originals);
  try {
    for (const Adapter& adapter : all_) adapter.weight.copy_(sum_of(adapter));
  } catch (...) {
    unmerge();
    throw;
  }
}

void Adapters::unmerge() noexcept {
  try {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < all_.size(); ++i) all_[i].weight.copy_(originals_[i]);
  } catch (const std::exception&) {
    // A GPU that failed accepts no work. That failure, which is on its way, ends the program.
  }
  originals_.clear();
}

}  // namespace decent
