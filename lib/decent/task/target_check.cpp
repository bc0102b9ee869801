#include "decent/task/target_check.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"
#include "decent/task/sources.h"

namespace decent {
namespace {

using Clock = std::chrono::steady_clock;

// Time for the samples of a data set in their order, then for a few spread over the rest.
constexpr auto kTimeLimit = std::chrono::seconds(2);
constexpr auto kTimeOfRest = std::chrono::seconds(1);
constexpr std::int64_t kSamplesAtOnce = 1024;
constexpr std::int64_t kMasksAtOnce = 16;  // they are decoded
constexpr std::int64_t kSpreadSamples = 1024;

bool is_integer(DType dtype) {
  return at::isIntegralType(scalar_type(dtype), /*includeBool=*/false);
}

// The largest number of each integer input, and its sample: a table of embeddings may lack it.
std::string largest_numbers(const Task& task, const DataSet& data,
                            std::span<const std::int64_t> samples, const Batch& batch) {
  std::string text;
  for (std::size_t i = 0; i < task.inputs.size(); ++i) {
    const at::Tensor& field = batch.fields.at(i);
    if (!at::isIntegralType(field.scalar_type(), /*includeBool=*/false) || field.numel() == 0)
      continue;
    const at::Tensor largest = field.reshape({field.size(0), -1}).amax(1);
    const auto row = largest.argmax().item<std::int64_t>();
    text += ".\nThe largest number in field '" + task.inputs[i].field + "' of the batch is " +
            std::to_string(largest[row].item<std::int64_t>());
    const bool is_known = std::ssize(samples) == batch.samples();  // no sample is left out
    if (is_known)
      text += ": " + data.text_of(samples[static_cast<std::size_t>(row)]) + ", counted from 0";
  }
  return text;
}

class SampleCheck {
 public:
  SampleCheck(const DataSet& data, const Criterion& criterion, std::optional<std::int64_t> classes)
      : data_(data), source_(data.samples->source()), criterion_(criterion), classes_(classes) {
    if (!data.has_target || !classes) return;
    const std::size_t target = data.fields.back();
    // A transform of batches may have turned the target into probabilities.
    if (target < source_.fields().size() && is_integer(source_.fields()[target].dtype))
      target_ = target;
  }

  /// Whether there is anything to look at.
  bool is_on() const { return target_ || source_.decodes(); }

  /// How many samples to check between two looks at the clock.
  std::int64_t at_once() const {
    return target_ && !source_.fields()[*target_].mask_of.empty() ? kMasksAtOnce : kSamplesAtOnce;
  }

  /// Checks these samples. Throws UserError for the first that is wrong.
  void check(const std::vector<std::int64_t>& samples) {
    const bool targets_pass = !target_ || pass(samples);
    if (targets_pass && !source_.decodes()) return;
    for (const std::int64_t sample : samples) {
      if (is_there(sample) && !targets_pass) check_target_of(sample);
    }
  }

 private:
  // Whether their targets, read at once, are known to be good.
  bool pass(const std::vector<std::int64_t>& samples) {
    if (data_.left_out || !source_.fields()[*target_].fixed()) return false;
    try {
      check_targets(samples);
      return true;
    } catch (const UserError&) {
      return false;
    }
  }

  // False for a sample that is left out.
  bool is_there(std::int64_t sample) const {
    try {
      source_.check_there(sample);
      return true;
    } catch (const UserError& error) {
      if (data_.left_out) return false;
      throw UserError(data_.key + ": " + error.what());
    }
  }

  void check_target_of(std::int64_t sample) const {
    const std::optional<HostArray> target = target_of(sample);
    if (!target) return;
    try {
      check_target(target->bytes.data(), target->shape);
    } catch (const UserError& error) {
      throw UserError(data_.key + ": " + data_.text_of(sample) +
                      ", counted from 0: " + error.what());
    }
  }

  // nullopt for a sample that is left out.
  std::optional<HostArray> target_of(std::int64_t sample) const {
    try {
      return source_.read_one(*target_, sample);
    } catch (const UserError& error) {
      if (data_.left_out) return std::nullopt;
      throw UserError(data_.key + ": " + error.what());
    }
  }

  void check_targets(const std::vector<std::int64_t>& samples) {
    const Field& field = source_.fields()[*target_];
    bytes_.resize(samples.size() * field.sample_bytes());
    source_.read(*target_, samples, bytes_.data());
    std::vector<std::int64_t> shape = field.shape;
    shape.insert(shape.begin(), std::ssize(samples));
    check_target(bytes_.data(), shape);
  }

  void check_target(const std::byte* bytes, const std::vector<std::int64_t>& shape) const {
    const at::ScalarType dtype = scalar_type(source_.fields()[*target_].dtype);
    criterion_.check_classes(at::from_blob(const_cast<std::byte*>(bytes), shape, dtype), *classes_);
  }

  const DataSet& data_;
  const Source& source_;
  const Criterion& criterion_;
  std::optional<std::int64_t> classes_;
  std::optional<std::size_t> target_;  // field of the source; nullopt: not checked
  std::vector<std::byte> bytes_;
};

// Checks samples [first, end). Returns the first for which there was no time.
std::int64_t check_in_order(SampleCheck& check, std::int64_t first, std::int64_t end) {
  const auto deadline = Clock::now() + kTimeLimit;
  while (first < end && Clock::now() < deadline) {
    std::vector<std::int64_t> samples(
        static_cast<std::size_t>(std::min(check.at_once(), end - first)));
    std::iota(samples.begin(), samples.end(), first);
    check.check(samples);
    first += std::ssize(samples);
  }
  return first;
}

void check_spread(SampleCheck& check, std::int64_t first, std::int64_t end) {
  const auto deadline = Clock::now() + kTimeOfRest;
  const std::int64_t stride = std::max<std::int64_t>(1, (end - first) / kSpreadSamples);
  for (; first < end && Clock::now() < deadline; first += stride) check.check({first});
}

std::optional<std::string> check_share(const DataSet& data, SampleCheck check,
                                       const Member& member) {
  if (!check.is_on()) return std::nullopt;
  const std::int64_t share = data.size() / member.size() + 1;
  const std::int64_t begin = std::min(data.size(), share * member.place());
  const std::int64_t end = std::min(data.size(), begin + share);
  const std::int64_t reached = check_in_order(check, begin, end);
  if (reached == end) return std::nullopt;
  check_spread(check, reached, end);
  return data.key + ": " + std::to_string(reached - begin) + " of " +
         counted(end - begin, "sample") +
         " and a few of the others were looked at for missing files and classes that the model "
         "does not have; there are too many to look at all of them before the first step";
}

// A note on a source whose `limit` takes the first samples of a file, which may be sorted by class.
std::optional<std::string> one_class_note(const DataSet& data, const SourceRecipe& recipe) {
  const std::vector<Field>& fields = data.samples->source().fields();
  const bool is_limited = recipe.limit && data.has_target && data.fields.back() < fields.size();
  if (!is_limited || data.left_out || data.size() < 2) return std::nullopt;
  const Field& target = fields[data.fields.back()];
  if (!is_integer(target.dtype) || !target.shape.empty()) return std::nullopt;
  std::set<std::int64_t> classes;
  for (const std::int64_t sample : spread_samples(data.samples->source(), kSpreadSamples)) {
    HostArray read = data.samples->source().read_one(data.fields.back(), sample);
    classes.insert(
        at::from_blob(read.bytes.data(), {}, scalar_type(target.dtype)).item<std::int64_t>());
    if (classes.size() > 1) return std::nullopt;
  }
  return data.key + ".limit takes the first " + counted(data.size(), "sample") +
         ", and all that were looked at have class " + std::to_string(*classes.begin()) +
         ": the data is probably sorted; `holdout: {fraction: 0.1, part: eval}` in place of limit "
         "takes a tenth of it from everywhere";
}

}  // namespace

void check_classes(const DataSet& data, const Criterion& criterion, std::int64_t classes,
                   std::span<const std::int64_t> samples) {
  SampleCheck(data, criterion, classes).check({samples.begin(), samples.end()});
}

void throw_for_batch(const Task& task, const DataSet& data, std::span<const std::int64_t> samples,
                     const Batch& batch, const UserError& error, std::optional<std::int64_t> step) {
  constexpr std::size_t kShown = 8;
  if (const auto* wrong = dynamic_cast<const WrongClass*>(&error))
    check_classes(data, task.criterion, wrong->count(), samples);
  const std::string text = error.what();
  const bool is_index = text.find("index out of range") != std::string::npos;
  const std::string where = step ? "step " + std::to_string(*step) + ": " : "";
  std::string samples_text = is_index ? largest_numbers(task, data, samples, batch) : "";
  if (step && samples_text.empty()) {
    std::vector<std::string> numbers;
    for (const std::int64_t sample : samples) numbers.push_back(std::to_string(sample));
    samples_text = std::string(text.ends_with('.') ? "" : ".") + "\nThe batch is of the samples " +
                   some_of(numbers, kShown) + (data.files.empty() ? "" : " of " + data.files) +
                   ", counted from 0";
  }
  throw UserError(where + data.key + ": " + text + samples_text);
}

std::vector<std::string> check_samples(const Task& task, std::optional<std::int64_t> classes,
                                       const Member& member) {
  std::vector<std::string> notes;
  for (const std::optional<DataSet>* data : {&task.train, &task.eval}) {
    if (!*data) continue;
    const auto note = check_share(**data, SampleCheck(**data, task.criterion, classes), member);
    if (note) notes.push_back(*note);
    const DataRecipe& recipe = task.recipe.data;
    const auto one_class =
        one_class_note(**data, data == &task.eval && recipe.eval ? *recipe.eval : recipe.train);
    if (classes && one_class) notes.push_back(*one_class);
  }
  return notes;
}

}  // namespace decent
