#pragma once
// From the recipe's data section to open sources and the fields that the model reads.

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "decent/config/recipe.h"
#include "decent/data/learned.h"
#include "decent/data/samples.h"

namespace decent {

/// Samples, and the use of their fields.
struct DataSet {
  std::string key;  // "data.train", "data.eval" or "data.predict", for messages
  std::shared_ptr<const Samples> samples;
  std::shared_ptr<LeftOut> left_out = nullptr;  // null: a sample that cannot be read is an error
  std::vector<std::size_t>
      fields;  // the model's inputs in the order of model.inputs, then the target if there is one
  bool has_target = true;
  std::string content;  // see content_of
  std::string files;    // as the recipe names them, in quotes; empty for builtin data

  const Field& field(std::size_t number) const { return samples->fields()[fields[number]]; }
  std::int64_t size() const { return samples->size(); }
  /// A batch of `fields`; see Samples::read. Errors name `key`.
  Batch read(std::span<const std::int64_t> indices, std::int64_t epoch = 0,
             HostMemory memory = HostMemory::pageable) const;
  /// "sample 7 ('d.npz')", with its row if that is another number.
  std::string text_of(std::int64_t sample) const;
  /// The target among the fields of a batch; undefined if the model gives its loss itself.
  at::Tensor target_in(const std::vector<at::Tensor>& batch) const {
    return has_target ? batch.back() : at::Tensor();
  }
};

/// Up to `most` samples of the source, spread evenly over it.
std::vector<std::int64_t> spread_samples(const Source& source, std::int64_t most);

/// A checksum over all fields of up to 64 samples, spread evenly over the source. It distinguishes
/// data sets of the same shape.
std::string content_of(const Source& source, bool leaves_out = false);

/// What a data set is for: training applies data.transforms, the others
/// DataRecipe::transforms_of_evaluation without random ones. For prediction the source needs no
/// target, and only the model's inputs are transformed.
enum class DataUse { training, evaluation, prediction };

/// Throws UserError if data.eval_transforms has a random transform, or if it normalizes the target
/// otherwise than data.transforms, so that losses would have two units. Both lists must have
/// numbers in place of `normalize: auto`.
void check_eval_transforms(const Recipe& recipe);

/// The samples of data.train, data.eval or data.predict, as `key` says, for a batch of any fields.
/// Throws UserError if the source cannot be read or a transform does not fit it. `known`: what the
/// run learned of its training data, which determines how the source is read; null if nothing is
/// known, as for the training data of a new run.
Samples open_samples(const std::string& key, const Recipe& recipe, DataUse use,
                     std::shared_ptr<LeftOut> left_out = nullptr,
                     const LearnedData* known = nullptr);

/// Opens data.train, data.eval or data.predict, as `key` says. Throws UserError naming `key` if the
/// source cannot be read, a transform does not fit it, it lacks a field that the model needs, or
/// `known` (see open_samples) and a key of the source contradict each other.
DataSet open_data_set(const std::string& key, const Recipe& recipe, DataUse use,
                      const LearnedData* known = nullptr);

/// The number of the field of the training data that decides its weights: the one that
/// data.sampling names, or the target for classes. Throws UserError if there is none, and for an
/// input of the model.
std::size_t weights_field(const DataSet& data, const Recipe& recipe);

}  // namespace decent
