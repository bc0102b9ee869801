#include "decent/data/samples.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "decent/core/error.h"
#include "decent/data/field_of_batch.h"

namespace decent {
namespace {

// If this many samples in a row cannot be read, the cause is something other than the samples.
constexpr int kMaxUnreadableInARow = 100;

bool fixed(const Source& source, std::span<const std::size_t> fields) {
  return std::all_of(fields.begin(), fields.end(),
                     [&](std::size_t field) { return source.fields()[field].fixed(); });
}

// The extents of a batch's samples after a transform. Extents that may differ between batches stay
// as in the tensor before it.
std::vector<std::int64_t> extents_after(const Field& field, const at::Tensor& before) {
  std::vector<std::int64_t> extents = field.shape;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == kAnyExtent) extents[i] = before.size(static_cast<std::int64_t>(i) + 1);
  }
  return extents;
}

// Calls `act` and adds the sample's name to its errors, as only sources do by themselves.
void naming(const Source& source, std::int64_t index, const std::function<void()>& act) {
  try {
    act();
  } catch (const UserError& error) {
    throw UserError(sample_text(source, index) + ", counted from 0: " + error.what());
  }
}

}  // namespace

Samples::Samples(std::unique_ptr<const Source> source, Transforms transforms, std::uint64_t seed,
                 std::shared_ptr<LeftOut> left_out)
    : source_(std::move(source)),
      transforms_(std::move(transforms)),
      seed_(seed),
      all_(source_->fields().size()),
      left_out_(std::move(left_out)) {
  std::iota(all_.begin(), all_.end(), std::size_t{0});
  sample_fields_ = source_->fields();
  for (const auto& transform : transforms_.of_samples)
    sample_fields_ = transform->fields(std::move(sample_fields_));
  fields_ = sample_fields_;
  for (const auto& transform : transforms_.of_batches) {
    std::vector<Field> made = transform->fields(sample_fields_, std::ssize(source_->classes()));
    if (transform != transforms_.of_batches.front() && made != fields_) {
      throw UserError(
          "each batch takes one of the transforms of batches, but they make different fields; give "
          "them the same field, target and num_classes");
    }
    fields_ = std::move(made);
  }
}

// Reads all fields, because a transform may look at any.
void Samples::read_one(std::span<const std::size_t> fields, std::int64_t index, std::int64_t epoch,
                       Sample& sample) const {
  const bool all = !transforms_.of_samples.empty();
  source_->read_one(all ? std::span<const std::size_t>(all_) : fields, index, sample);
  for (std::size_t i = 0; i < transforms_.of_samples.size(); ++i) {
    SampleRandom random(seed_, static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(index),
                        i);
    naming(*source_, index, [&] { transforms_.of_samples[i]->apply(sample, random); });
  }
}

// False if the sample is left out and nothing replaces it.
bool Samples::read_or_replace(std::span<const std::size_t> fields, std::int64_t index,
                              std::int64_t epoch, Sample& sample) const {
  for (int tries = 0;; ++tries) {
    try {
      read_one(fields, index, epoch, sample);
      return true;
    } catch (const UserError& error) {
      if (!left_out_ || tries == kMaxUnreadableInARow) throw;
      left_out_->add(index, error.what());
      if (left_out_->instead() == LeftOut::Instead::nothing) return false;
      index = (index + 1) % size();
    }
  }
}

Batch Samples::read_each(std::span<const std::size_t> fields, std::span<const std::int64_t> indices,
                         std::int64_t epoch, HostMemory memory) const {
  std::vector<FieldOfBatch> parts;
  for (const std::size_t field : fields)
    parts.emplace_back(sample_fields_[field], std::ssize(indices), memory);
  Sample sample(source_->fields().size());
  bool any = false;
  for (const std::int64_t index : indices) {
    if (!read_or_replace(fields, index, epoch, sample)) continue;
    naming(*source_, index, [&] {
      for (std::size_t i = 0; i < fields.size(); ++i) parts[i].add(sample[fields[i]]);
    });
    any = true;
  }
  Batch batch;
  if (!any) return batch;
  for (FieldOfBatch& part : parts) batch.fields.push_back(std::move(part).tensor());
  return batch;
}

Batch Samples::read_all(std::span<const std::size_t> fields, std::span<const std::int64_t> indices,
                        std::int64_t epoch, HostMemory memory) const {
  // Sources copy many samples at once faster than one by one.
  if (!transforms_.of_samples.empty() || !fixed(*source_, fields))
    return read_each(fields, indices, epoch, memory);
  try {
    return read_batch(*source_, fields, indices, memory);
  } catch (const UserError&) {
    if (!left_out_) throw;
    return read_each(fields, indices, epoch, memory);
  }
}

// The place of the batch's transform among those of batches.
std::size_t Samples::choose_transform(std::int64_t epoch, std::int64_t first_sample) const {
  const std::size_t count = transforms_.of_batches.size();
  SampleRandom random(seed_, static_cast<std::uint64_t>(epoch),
                      static_cast<std::uint64_t>(first_sample),
                      transforms_.of_samples.size() + count);
  return static_cast<std::size_t>(random.integer(static_cast<std::int64_t>(count)));
}

void Samples::transform(Batch& batch, std::span<const std::size_t> fields,
                        const BatchTransform& transform, const SampleRandom& random,
                        HostMemory memory) const {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!transform.changes(fields[i])) continue;
    const at::Tensor before = std::exchange(batch.fields[i], {});
    const Field& field = fields_[fields[i]];
    batch.fields[i] =
        empty_batch(field.dtype, before.size(0), extents_after(field, before), memory);
    const auto* read = static_cast<const std::byte*>(before.const_data_ptr());
    auto* written = static_cast<std::byte*>(batch.fields[i].mutable_data_ptr());
    transform.apply(fields[i], before.size(0), {read, before.nbytes()},
                    {written, batch.fields[i].nbytes()}, random);
  }
}

Batch Samples::read(std::span<const std::size_t> fields, std::span<const std::int64_t> indices,
                    std::int64_t epoch, HostMemory memory) const {
  Batch batch = read_all(fields, indices, epoch, memory);
  if (batch.empty() || transforms_.of_batches.empty()) return batch;
  const std::size_t place = choose_transform(epoch, indices.front());
  const SampleRandom random(seed_, static_cast<std::uint64_t>(epoch),
                            static_cast<std::uint64_t>(indices.front()),
                            transforms_.of_samples.size() + place);
  transform(batch, fields, *transforms_.of_batches[place], random, memory);
  return batch;
}

}  // namespace decent
