#pragma once
// What only the format of a model's file knows about the model. Whoever checks, reports or writes a
// model asks here, so that nothing outside a format's own folder names a format. No torch.

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

/// What the file declares of shapes against the data: one line that says what does not fit, and one
/// that says what to do.
struct LayoutMismatch {
  std::string text;
  std::string way_out;
};

/// An output that is probabilities, which the loss makes itself.
struct ProbabilityOutput {
  std::string name;
  std::string comes_from;   // "node 'softmax' (Softmax)"
  std::string changed_by;   // an operator after that, behind which there are no logits; or empty
  bool has_logits = false;  // that forward can give in its place; see Model::gives_logits
};

/// The file that a model was opened from. A format overrides what its files have an answer to; the
/// answers here are those of a file that is taken as it is.
class ModelOrigin {
 public:
  virtual ~ModelOrigin() = default;

  /// Files that the model was read from, besides its own.
  virtual std::vector<std::filesystem::path> other_files() const { return {}; }

  /// What was understood of a file that had to be translated: about 20 lines or, where `full`, one
  /// for each tensor too.
  virtual std::vector<std::string> report(bool /*full*/) const { return {}; }

  /// What the file says, or has lost, that makes training another than that of the model's own
  /// program: a line each, for the start of a run.
  virtual std::vector<std::string> training_notes() const { return {}; }

  /// Whether operators whose train or eval mode the file holds as a constant
  /// (Model::fixed_mode_operators) are meant so, as the file tells of the others.
  virtual bool fixes_modes_on_purpose() const { return false; }

  /// Operators that draw random numbers in evaluation, too, as nothing in the file says that they
  /// are of training alone: "rand_like 2", and what to do about it. Empty where there is none.
  virtual std::string random_in_evaluation() const { return ""; }

  /// What a file that was written for inference has lost of training, see kLostInFile.
  virtual std::string lost_for_inference() const { return ""; }

  // ---- weights

  /// Why none of the `parameters` can be trained and what to do, as it follows on "model 'x' ".
  virtual std::string nothing_trainable(std::size_t parameters) const = 0;

  /// Throws UserError where no gradient can reach a weight from the output that is used (all of
  /// them where none was chosen), unless `frozen`, globs over names, holds it. Only where that can
  /// be told from the file.
  virtual void check_gradients(std::span<const std::string> /*frozen*/) const {}

  // ---- inputs and outputs

  /// forward's argument for a name in the recipe, which may be the file's own for that input.
  virtual std::string argument_of(const std::string& name) const { return name; }

  /// Where the file's shapes do not fit a batch.
  virtual std::optional<LayoutMismatch> input_mismatch(const FedInput& /*input*/) const {
    return std::nullopt;
  }
  /// The same for the output that is used. `class_dim`: the dimension of the classes, counted from
  /// 0, where it is known.
  virtual std::optional<LayoutMismatch> output_mismatch(
      std::optional<std::int64_t> /*class_dim*/) const {
    return std::nullopt;
  }

  /// What to do about a forward that failed on `samples` samples where the file was exported for
  /// another number: a line that begins with a line break, or nothing.
  virtual std::string batch_advice(std::int64_t /*samples*/) const { return ""; }

  /// How many samples a batch must have, where the file says so.
  virtual std::optional<std::int64_t> fixed_batch() const { return std::nullopt; }

  /// Where the output that is used is probabilities that ImportOptions::activation makes itself.
  virtual std::optional<ProbabilityOutput> probabilities() const { return std::nullopt; }

  // ---- writing; for formats that only hold models which came from them (ModelFormat::write)

  /// Writes the original file with the parameters and buffers of `model`, which was opened from it,
  /// in the types of the file, and with FileExtras::data. Throws UserError where one is beyond what
  /// its type can hold; WriteError.
  virtual void write_back(const Model& /*model*/, const std::filesystem::path& /*path*/,
                          const FileExtras& /*extras*/) const {
    throw std::logic_error("files of this format are not written back");
  }

  /// Puts what the file's element types make of the weights (float16, bfloat16) into `model`, which
  /// then computes what the written file holds.
  virtual void round_to_file_types(Model& /*model*/) const {}
};

}  // namespace decent
