#pragma once
// A model as the rest of the program sees it: a TorchScript module with its parameters and buffers,
// whatever file it came from (formats.h).
//
// Threads: one thread uses a model, and it must be the one that called use_plain_executor().

#include <torch/csrc/jit/api/module.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "decent/model/adapters.h"
#include "decent/model/origin.h"

namespace decent {

/// The optimizing TorchScript executor changes its plan after the first runs, so that resumed or
/// interleaved runs would not be bit-exact. Thread-local: call it in every thread that runs a
/// model.
void use_plain_executor();

/// Which data field feeds which argument of forward. With empty `argument`s: in forward's order.
struct ForwardInput {
  std::string argument;
  std::string field;
};

/// What a format reads from a file; see ModelFormat::open.
struct OpenedModel {
  torch::jit::Module module;  // on the CPU; with forward and the attribute `training`
  std::shared_ptr<const ModelOrigin> origin;
  std::optional<std::string> output;  // the output of the module that is used; see select_output
  /// An attribute of the module: if it is true, forward gives logits instead of the output that
  /// origin->probabilities() describes. "" if there is none. See Model::gives_logits.
  std::string logits_switch;
};

/// "model 'x.pt'", as messages begin.
std::string model_in_quotes(const std::filesystem::path& path);

class Model {
 public:
  using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

  /// Takes the content of a file, which open_model() reads.
  Model(std::filesystem::path path, OpenedModel opened);

  torch::jit::Module& module() { return module_; }
  const torch::jit::Module& module() const { return module_; }
  const std::filesystem::path& path() const { return path_; }

  /// What only the file's format can answer.
  const ModelOrigin& origin() const { return *origin_; }

  /// What workers send, save and average, each tensor once: the parameters in order of
  /// registration, under their first names, frozen ones (requires_grad = False) included. With
  /// adapters, the trained parameters and, in the place of each adapted weight, its A and B.
  const NamedTensors& parameters() const { return parameters_; }
  /// The other parameters if there are adapters, which never change; else none.
  const NamedTensors& base() const { return base_; }
  /// The two together.
  NamedTensors all_parameters() const;
  /// Parameters of base() that train by themselves according to the model's file.
  const std::vector<at::Tensor>& trainable_base() const { return trainable_base_; }
  /// All other tensors that the module holds as attributes, each once.
  const NamedTensors& buffers() const { return buffers_; }
  /// The parameters that forward may write into in place, as it does into buffers.
  const NamedTensors& written_parameters() const { return written_parameters_; }
  /// Throws UserError, with advice, if no parameter requires a gradient.
  void check_trainable() const;

  /// Every name of every parameter and buffer, as in Python's state_dict: tied tensors appear under
  /// all their names.
  const NamedTensors& state() const { return state_; }

  /// From now on `weights` have adapters, only these and `trained` train, and all other parameters
  /// are base(). All are of parameters(), and weights have at least two dimensions. Throws
  /// UserError if forward writes into a parameter that does not train, or if the gradient of one
  /// of `weights` is sparse, and as the constructor of Adapters. Must be called before move_to().
  void add_adapters(const NamedTensors& weights, const NamedTensors& trained,
                    const AdapterOptions& options);
  /// Null if there are none.
  Adapters* adapters() { return adapters_.get(); }

  /// SHA-1 of the computation in the model's file; see forward_graph.h.
  const std::string& code_hash() const { return code_hash_; }

  /// Tensors that forward holds as constants and that move with the model; they have no name.
  const std::vector<at::Tensor>& constants() const { return constants_; }

  /// From now on train() leaves batch norms in eval mode if their own parameters do not train, or
  /// if they have none: they keep their running statistics and normalize by them. Returns the names
  /// of these modules. Throws UserError if there are none, or if the file holds the mode of a batch
  /// norm as a constant.
  std::vector<std::string> freeze_statistics();

  /// As torch.nn.Module's functions of these names.
  void train();
  void eval() { module_.eval(); }

  /// Moves every tensor of the model, which is loaded on the CPU. The tensors stay the same objects
  /// with other memory. Must be called before training takes over the parameters.
  void move_to(at::Device device);
  at::Device device() const { return device_; }

  /// Operators whose train/eval switch the file holds as a constant, e.g. "2 x dropout", as
  /// torch.jit.trace writes it. train() and eval() do not affect them.
  const std::vector<std::string>& fixed_mode_operators() const { return fixed_mode_operators_; }

  /// Whether forward reads tensors through .data, of which autograd keeps no account.
  bool reads_data_of_tensors() const { return reads_data_of_tensors_; }

  /// Whether forward returns one tensor, which a sigmoid makes, perhaps seen in another shape.
  bool ends_in_sigmoid() const { return ends_in_sigmoid_; }

  /// A model may replace its buffers by new tensors (self.mean = 0.9 * self.mean + ..). This copies
  /// their values into the tensors of buffers() and puts those back, so that they stay the model's
  /// buffers. Must be called after each forward, and after its backward if there is one. Throws
  /// UserError if a buffer changed its shape or element type.
  void settle_buffers();

  /// Checks `inputs` against forward's signature. Throws UserError naming the arguments of forward.
  void check_signature(std::span<const ForwardInput> inputs) const;

  /// Whether forward() gives the logits of the output, which the file computes before the softmax
  /// or sigmoid of ImportOptions::activation. A saved module computes the same as the file.
  bool gives_logits() const { return gives_logits_; }
  /// Only if gives_logits() was true at first.
  void give_logits(bool on) { gives_logits_ = on; }

  /// Mixed precision: forward runs in `dtype` (at::kBFloat16, at::kHalf) where that is safe, as
  /// under torch.autocast. The result is float32.
  void set_autocast(std::optional<at::ScalarType> dtype) { autocast_ = dtype; }
  std::optional<at::ScalarType> autocast() const { return autocast_; }

  /// Puts weights of convolutions and inputs with the same number of dimensions (4, 5) into
  /// channels_last order. Must be called before training takes over the parameters.
  void use_channels_last();

  /// Runs forward on tensors on device(), given in the order of `inputs`, and gives the output that
  /// ImportOptions::output chooses (see select_output), or its logits. Throws UserError with the
  /// model's own reason if forward fails, or if it has no such output.
  at::Tensor forward(std::span<const ForwardInput> inputs, std::span<const at::Tensor> tensors);

  /// "forward(x: Tensor, mask: Tensor)".
  std::string signature() const;

  /// The index among forward's arguments of the input with that number; the number of arguments if
  /// forward has no such argument, which check_signature() refuses.
  std::size_t argument_of(std::span<const ForwardInput> inputs, std::size_t number) const;

 private:
  // A place where the module holds one of buffers().
  struct BufferSlot {
    torch::jit::ObjectPtr owner;
    std::size_t slot;
    std::string name;
    at::Tensor buffer;
  };

  c10::IValue run(std::span<const ForwardInput> inputs, std::span<const at::Tensor> tensors);
  /// Throws UserError if the file's own shapes explain why forward failed.
  void refuse_layout(const std::string& reason, std::span<const ForwardInput> inputs,
                     std::span<const at::Tensor> tensors) const;
  /// Throws UserError, which says how forward failed on these tensors and what to do.
  [[noreturn]] void refuse_batch(const std::string& reason, std::span<const ForwardInput> inputs,
                                 std::span<const at::Tensor> tensors) const;
  void collect_tensors();
  void find_written_parameters(const torch::jit::Graph& forward);
  void find_buffer_slots();
  void make_buffers_writable();

  std::filesystem::path path_;
  torch::jit::Module module_;
  std::shared_ptr<const ModelOrigin> origin_;
  std::optional<std::string> output_;
  std::string logits_switch_;
  bool gives_logits_ = false;
  NamedTensors parameters_;
  NamedTensors base_;
  std::vector<at::Tensor> trainable_base_;
  std::unique_ptr<Adapters> adapters_;
  NamedTensors written_parameters_;
  NamedTensors buffers_;
  NamedTensors state_;
  std::vector<BufferSlot> buffer_slots_;
  std::vector<torch::jit::Module> in_eval_mode_;  // whatever train() does with the others
  std::vector<at::Tensor> constants_;
  std::vector<std::string> fixed_mode_operators_;
  std::string code_hash_;
  at::Device device_{at::kCPU};
  bool reads_data_of_tensors_ = false;
  bool ends_in_sigmoid_ = false;
  std::optional<at::ScalarType> autocast_;
  bool channels_last_ = false;
};

}  // namespace decent
