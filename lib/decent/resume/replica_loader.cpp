#include "decent/resume/replica_loader.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"
#include "decent/parallel/global_average.h"
#include "decent/parallel/same_bits.h"

namespace decent {
namespace {

// The most bytes of a file that one broadcast carries.
constexpr std::int64_t kMaxBroadcastBytes = std::int64_t{1} << 28;

// A copy of the tensor in CPU memory, since the file may not align it. Undefined if the file has
// none of that name.
at::Tensor read_tensor(const ReplicaFile& file, const std::string& name, const at::Tensor& like) {
  const TensorView* view = file.find(name);
  if (view == nullptr) return {};
  if (view->shape != like.sizes().vec() || scalar_type(view->dtype) != like.scalar_type()) {
    throw CheckpointDamaged("the checkpoint is damaged: '" + name + "' is " +
                            dtype_text(scalar_type(view->dtype)) + shape_text(view->shape) +
                            ", not " + dtype_text(like.scalar_type()) + shape_text(like.sizes()));
  }
  const at::Tensor tensor = at::empty(like.sizes(), at::TensorOptions(like.scalar_type()));
  if (!view->data.empty()) {
    std::memcpy(tensor.mutable_data_ptr(), view->data.data(), view->data.size());
  }
  return tensor;
}

void copy_from(const ReplicaFile& file, const NamedTensors& targets) {
  for (const auto& [name, target] : targets) {
    const at::Tensor tensor = read_tensor(file, name, target);
    if (tensor.defined()) target.copy_(tensor);
  }
}

// Sends the bytes of a replica from the worker that has them to every worker.
std::string broadcast_file(const FoundCheckpoint& found, Communicator& communicator, int replica) {
  const int reader = found.readers[static_cast<std::size_t>(replica)];
  const auto size =
      static_cast<std::int64_t>(found.manifest.files[static_cast<std::size_t>(replica)].bytes);
  std::string bytes(static_cast<std::size_t>(size), '\0');
  if (reader == communicator.rank()) bytes = found.own.at(replica).bytes();
  for (std::int64_t first = 0; first < size; first += kMaxBroadcastBytes) {
    const std::int64_t count = std::min(kMaxBroadcastBytes, size - first);
    communicator.broadcast(at::from_blob(bytes.data() + first, {count}, at::kByte), reader)->wait();
  }
  return bytes;
}

// Sends the tensor from `file`, which worker `reader` has, to every worker. If the file lacks it,
// every worker gets `target` of worker `reader`.
at::Tensor receive_tensor(const ReplicaFile* file, int reader, Communicator& communicator,
                          const std::string& name, const at::Tensor& target) {
  at::Tensor value = at::empty(target.sizes(), at::TensorOptions(target.scalar_type()));
  if (reader == communicator.rank()) {
    const at::Tensor read = read_tensor(*file, name, target);
    if (read.defined()) {
      value = read;
    } else {
      value.copy_(target);
    }
  }
  communicator.broadcast(value, reader)->wait();
  return value;
}

const ReplicaFile* find_own(const FoundCheckpoint& found, int replica) {
  const auto file = found.own.find(replica);
  return file == found.own.end() ? nullptr : &file->second;
}

// Copies tensors that were alike on all workers. If some workers cannot read a file with them, all
// take them from the first worker that can.
void copy_shared(const FoundCheckpoint& found, Communicator& communicator,
                 const NamedTensors& targets) {
  if (std::ssize(found.with_everything) == communicator.size()) {
    copy_from(*found.everything(), targets);
    return;
  }
  const int reader = found.with_everything.front();
  for (const auto& [name, target] : targets)
    target.copy_(receive_tensor(found.everything(), reader, communicator, name, target));
}

// Copies each worker's own tensors.
void copy_own(const FoundCheckpoint& found, Communicator& communicator,
              const NamedTensors& targets) {
  for (int replica = 0; replica < communicator.size(); ++replica) {
    const int reader = found.readers[static_cast<std::size_t>(replica)];
    const bool mine = replica == communicator.rank();
    if (reader == replica) {
      if (mine) copy_from(found.own.at(replica), targets);
      continue;
    }
    for (const auto& [name, target] : targets) {
      const at::Tensor value =
          receive_tensor(find_own(found, replica), reader, communicator, name, target);
      if (mine) target.copy_(value);
    }
  }
}

bool is_update_count(const std::string& name, const at::Tensor& tensor) {
  return name.starts_with(kOptimizerPrefix) && tensor.scalar_type() == at::kLong;
}

// Averages one tensor after another, on all workers together. A worker adds up the replicas that it
// reads; then the sums of all workers are added up.
class Averager {
 public:
  Averager(const FoundCheckpoint& found, Communicator& communicator, bool average_buffers)
      : found_(found), communicator_(communicator), average_buffers_(average_buffers) {}

  // Finds the buffers that hold the same bits in all replicas and keep them. Called before fill().
  void compare_buffers(const NamedTensors& targets) {
    NamedTensors buffers;
    for (const auto& [name, target] : targets) {
      if (name.starts_with(kBufferPrefix) && target.is_floating_point())
        buffers.emplace_back(name, target);
    }
    if (buffers.empty()) return;
    const std::vector<bool> same = same_in_all_rows(communicator_, hashes_of(buffers));
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      if (same[i]) same_buffers_.insert(buffers[i].first);
    }
  }

  // The memory of an exchange belongs to a worker and its neighbours. As the neighbours change, it
  // is not filled and begins afresh.
  void fill(const std::string& name, const at::Tensor& target) {
    if (name.starts_with(kExchangePrefix)) return;
    if (is_update_count(name, target)) {
      take(name, target, [](const at::Tensor& values) { return values.max(); });
    } else if (name.starts_with(kScalerPrefix)) {
      take(name, target, [](const at::Tensor& values) { return values.min(); });
    } else if (!target.is_floating_point() || same_buffers_.contains(name) ||
               (name.starts_with(kBufferPrefix) && !average_buffers_)) {
      first_replicas(name, target);
    } else {
      average(name, target);
    }
  }

  double distance() const {
    const at::Tensor total = at::scalar_tensor(squares_, at::kDouble);
    communicator_.all_reduce_sum(total)->wait();
    return std::sqrt(total.item<double>() / static_cast<double>(replicas()));
  }

 private:
  // The number of replicas in the checkpoint that are not missing.
  std::int64_t replicas() const {
    return std::count_if(found_.readers.begin(), found_.readers.end(),
                         [](int reader) { return reader >= 0; });
  }

  // One row for each replica; this worker fills the rows of the replicas that it reads.
  at::Tensor hashes_of(const NamedTensors& buffers) const {
    const at::Tensor table =
        at::zeros({replicas(), static_cast<std::int64_t>(buffers.size())}, at::kLong);
    for (const auto& [replica, file] : found_.own) {
      std::vector<at::Tensor> tensors;
      for (const auto& [name, target] : buffers) {
        const at::Tensor tensor = read_tensor(file, name, target);
        tensors.push_back(tensor.defined() ? tensor : at::empty({0}));
      }
      const auto row = std::count_if(found_.readers.begin(), found_.readers.begin() + replica,
                                     [](int reader) { return reader >= 0; });
      table[row].copy_(bit_hashes(tensors));
    }
    return table;
  }

  std::vector<at::Tensor> own(const std::string& name, const at::Tensor& like) const {
    std::vector<at::Tensor> tensors;
    for (const auto& [replica, file] : found_.own) {
      at::Tensor tensor = read_tensor(file, name, like);
      if (tensor.defined()) tensors.push_back(std::move(tensor));
    }
    return tensors;
  }

  // A tensor that no replica has (optimizer state of a frozen parameter) stays as it is.
  void average(const std::string& name, const at::Tensor& target) {
    const std::vector<at::Tensor> tensors = own(name, target);
    const at::Tensor sum = at::zeros({target.numel() + 1}, at::kDouble);
    const at::Tensor values = sum.narrow(0, 0, target.numel()).view(target.sizes());
    const double addend = mean_factors(replicas()).addend;
    for (const at::Tensor& tensor : tensors) values.add_(tensor.to(at::kDouble).mul(addend));
    sum[target.numel()].fill_(static_cast<double>(tensors.size()));
    communicator_.all_reduce_sum(sum)->wait();
    const double count = sum[target.numel()].item<double>();
    if (count == 0) return;
    values.div_(count * addend);
    copy_rounded_once(target, values);
    if (!name.starts_with(kModelPrefix)) return;
    for (const at::Tensor& tensor : tensors) {
      squares_ += tensor.to(at::kDouble).sub_(values).square_().sum().item<double>();
    }
  }

  // Takes one of the replicas' values of a scalar. A scalar that no replica has stays as it is.
  template <typename Choose>
  void take(const std::string& name, const at::Tensor& target, const Choose& choose) {
    const auto replicas = static_cast<std::int64_t>(found_.readers.size());
    const at::Tensor table = at::zeros({2, replicas}, at::kDouble);  // values; 1 if there is one
    for (const auto& [replica, file] : found_.own) {
      const at::Tensor value = read_tensor(file, name, target);
      if (!value.defined()) continue;
      table[0][replica].copy_(value);
      table[1][replica].fill_(1);
    }
    communicator_.all_reduce_sum(table)->wait();
    const at::Tensor values = table[0].masked_select(table[1].gt(0));
    if (values.numel() > 0) target.copy_(choose(values));
  }

  void first_replicas(const std::string& name, const at::Tensor& target) {
    const int replica = found_.first_replica();
    const int reader = found_.readers[static_cast<std::size_t>(replica)];
    target.copy_(receive_tensor(find_own(found_, replica), reader, communicator_, name, target));
  }

  const FoundCheckpoint& found_;
  Communicator& communicator_;
  bool average_buffers_;
  std::set<std::string> same_buffers_;  // names
  double squares_ = 0;                  // of this worker's replicas
};

// Those of the untrained parameters that the checkpoint's run trained.
NamedTensors newly_frozen(const FoundCheckpoint& found, const NamedTensors& untrained, int rank) {
  NamedTensors frozen;
  const ReplicaFile& replica = found.own.at(rank);
  for (const auto& [name, tensor] : untrained) {
    if (replica.find(update_count_name(name)) != nullptr) frozen.emplace_back(name, tensor);
  }
  return model_tensors(frozen, {});
}

void begin_ema(const NamedTensors& state) {
  const at::NoGradGuard no_grad;
  const std::map<std::string, at::Tensor> by_name(state.begin(), state.end());
  for (const auto& [name, average] : part_of(state, kEmaPrefix))
    average.copy_(by_name.at(tensor_name(kModelPrefix, name)));
}

}  // namespace

void load_replica(FoundCheckpoint& found, Communicator& communicator, const NamedTensors& targets) {
  const at::NoGradGuard no_grad;
  if (found.manifest.copies_alike()) {
    const StateParts parts = parts_of(targets);
    copy_shared(found, communicator, parts.shared);
    copy_own(found, communicator, parts.own);
    return;
  }
  for (int replica = 0; replica < communicator.size(); ++replica) {
    if (found.readers[static_cast<std::size_t>(replica)] == replica) continue;
    std::string bytes = broadcast_file(found, communicator, replica);
    if (replica != communicator.rank()) continue;
    found.own.erase(replica);
    found.own.emplace(
        replica,
        ReplicaFile(std::move(bytes), found.manifest.files[static_cast<std::size_t>(replica)]));
  }
  copy_from(found.own.at(communicator.rank()), targets);
}

double average_replicas(const FoundCheckpoint& found, Communicator& communicator,
                        const NamedTensors& targets, bool average_buffers) {
  const at::NoGradGuard no_grad;
  NamedTensors averaged = targets;
  if (found.manifest.copies_alike()) {
    StateParts parts = parts_of(targets);
    copy_shared(found, communicator, parts.shared);
    averaged = std::move(parts.own);
  }
  Averager averager(found, communicator, average_buffers);
  averager.compare_buffers(averaged);
  for (const auto& [name, target] : averaged) averager.fill(name, target);
  return averager.distance();
}

void load_state(FoundCheckpoint& found, Communicator& communicator, const NamedTensors& state,
                const NamedTensors& untrained, BeginWith begin, bool average_buffers) {
  const bool from_average = begin == BeginWith::average_of_replicas;
  const auto load = [&](const NamedTensors& targets) {
    if (from_average) {
      average_replicas(found, communicator, targets, average_buffers);
    } else {
      load_replica(found, communicator, targets);
    }
  };
  NamedTensors averages = state;
  const auto first_average = std::stable_partition(
      averages.begin(), averages.end(),
      [](const auto& tensor) { return !tensor.first.starts_with(kEmaPrefix); });
  load({averages.begin(), first_average});
  averages.erase(averages.begin(), first_average);
  // No exchange would ever bring the workers' copies of these parameters together again.
  if (!from_average && !found.manifest.copies_alike())
    average_replicas(found, communicator, newly_frozen(found, untrained, communicator.rank()),
                     average_buffers);
  begin_ema(state);  // of parameters whose average the checkpoint lacks
  load(averages);
}

}  // namespace decent
