#pragma once
// Everything about a model that only the format of its file knows. Code that checks, reports or
// writes a model asks here, so that no code outside a format's own folder names a format. No torch.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace decent {

class Model;
struct FileExtras;

/// A data field that feeds an input of the model.
struct FedInput {
  std::string name;  // of the file's input or of forward's argument; empty: the one at `position`
  std::size_t position = 0;
  std::string field;
  std::vector<std::int64_t> batch;  // shape
};

/// A conflict between the shapes that the file declares and the data: one line that says what does
/// not fit, and one that says what to do.
struct LayoutMismatch {
  std::string text;
  std::string way_out;
};

/// An output that is probabilities, which the loss computes itself.
struct ProbabilityOutput {
  std::string name;
  std::string comes_from;   // "node 'softmax' (Softmax)"
  std::string changed_by;   // an operator after it, after which there are no logits; or empty
  bool has_logits = false;  // whether forward can give logits instead; see Model::gives_logits
};

/// The file from which a model was opened. A format overrides the questions that its files can
/// answer. The default answers fit a file that needs no translation.
class ModelOrigin {
 public:
  virtual ~ModelOrigin() = default;

  /// Other files from which the model was read.
  virtual std::vector<std::filesystem::path> other_files() const { return {}; }

  /// How a file that had to be translated was understood: about 20 lines, and with `full` one more
  /// for each tensor.
  virtual std::vector<std::string> report(bool /*full*/) const { return {}; }

  /// What in the file, or missing from it, makes training differ from that in the model's own
  /// program: a line each, for the start of a run.
  virtual std::vector<std::string> training_notes() const { return {}; }

  /// Whether a constant train or eval mode of an operator in the file (Model::fixed_mode_operators)
  /// is intended, because the file tells which operators follow the mode.
  virtual bool fixes_modes_on_purpose() const { return false; }

  /// Operators that draw random numbers also in evaluation, because nothing in the file restricts
  /// them to training: "rand_like 2", and advice. Empty if there are none.
  virtual std::string random_in_evaluation() const { return ""; }

  /// The information about training that a file written for inference has lost, see kLostInFile.
  virtual std::string lost_for_inference() const { return ""; }

  // ---- weights

  /// Why none of the `parameters` can be trained and what to do, as a text that follows "model 'x'
  /// ".
  virtual std::string nothing_trainable(std::size_t parameters) const = 0;

  /// Throws UserError if no gradient can reach a weight from the output that is used (from any
  /// output if none was chosen), unless `frozen`, globs over names, matches the weight. Only if the
  /// file shows this.
  virtual void check_gradients(std::span<const std::string> /*frozen*/) const {}

  // ---- inputs and outputs

  /// forward's argument for a name in the recipe, which may be the file's own name of that input.
  virtual std::string argument_of(const std::string& name) const { return name; }

  /// A conflict between the file's shapes and a batch.
  virtual std::optional<LayoutMismatch> input_mismatch(const FedInput& /*input*/) const {
    return std::nullopt;
  }
  /// The same for the output that is used. `class_dim` is the dimension of the classes, counted
  /// from 0, if it is known.
  virtual std::optional<LayoutMismatch> output_mismatch(
      std::optional<std::int64_t> /*class_dim*/) const {
    return std::nullopt;
  }

  /// Advice if forward failed on `samples` samples because the file was exported for another
  /// number: a line that begins with a line break, or nothing.
  virtual std::string batch_advice(std::int64_t /*samples*/) const { return ""; }

  /// How many samples a batch must have, if the file fixes it.
  virtual std::optional<std::int64_t> fixed_batch() const { return std::nullopt; }

  /// Set if the output that is used is probabilities and ImportOptions::activation would compute
  /// them again.
  virtual std::optional<ProbabilityOutput> probabilities() const { return std::nullopt; }

  // ---- writing; for formats that can only hold models that were read from them
  // (ModelFormat::write)

  /// Writes the original file with the parameters and buffers of `model`, which was opened from it,
  /// in the types of the file, and with FileExtras::data. Throws UserError if a value is beyond the
  /// range of its type; WriteError.
  virtual void write_back(const Model& /*model*/, const std::filesystem::path& /*path*/,
                          const FileExtras& /*extras*/) const {
    throw std::logic_error("files of this format are not written back");
  }

  /// Rounds the weights of `model` to the file's element types (float16, bfloat16), so that the
  /// model computes the same as the written file.
  virtual void round_to_file_types(Model& /*model*/) const {}
};

}  // namespace decent
