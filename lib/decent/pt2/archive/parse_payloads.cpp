#include "decent/pt2/archive/parse.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "decent/core/stored_tensor.h"
#include "decent/core/text.h"

namespace decent::pt2 {
namespace {

// A view with strides of 0 has more elements than its record (torch.Tensor.expand). Up to this many
// more, in all tensors together, are believed to be intended.
constexpr std::uint64_t kMaxRepeatedElements = std::uint64_t{1} << 24;

std::int64_t known(Json json, const SymInt& number, const char* what) {
  if (number.value && *number.value >= 0) return *number.value;
  json.fail(std::string("has a ") + what + " that is no number from 0 on");
}

std::vector<std::int64_t> all_known(Json json, const std::vector<SymInt>& numbers,
                                    const char* what) {
  if (numbers.size() > kMaxTensorDimensions) {
    json.fail("has more than " + std::to_string(kMaxTensorDimensions) + " dimensions");
  }
  std::vector<std::int64_t> values;
  for (const SymInt& number : numbers) values.push_back(known(json, number, what));
  return values;
}

struct Extent {
  std::uint64_t elements = 0;  // of the tensor
  std::uint64_t end = 0;       // of the storage, up to the tensor's last
};

// Nothing if a number overflows.
std::optional<Extent> extent(const Payload& payload) {
  if (std::ranges::find(payload.sizes, 0) != payload.sizes.end()) return Extent{};
  Extent result{.elements = 1, .end = static_cast<std::uint64_t>(payload.storage_offset) + 1};
  bool overflows = false;
  for (std::size_t i = 0; i < payload.sizes.size(); ++i) {
    const auto size = static_cast<std::uint64_t>(payload.sizes[i]);
    std::uint64_t step = 0;
    overflows |=
        __builtin_mul_overflow(size - 1, static_cast<std::uint64_t>(payload.strides[i]), &step);
    overflows |= __builtin_add_overflow(result.end, step, &result.end);
    overflows |= __builtin_mul_overflow(result.elements, size, &result.elements);
  }
  return overflows ? std::nullopt : std::optional(result);
}

// `repeated` is how many elements beyond those in records are still allowed.
void check_size(Json json, const Payload& payload, std::uint64_t& repeated) {
  const std::uint64_t element = size_of(payload.dtype);
  if (element == 0) json.fail("has elements of an unknown type");
  const std::uint64_t there = payload.storage.size() / element;
  const std::optional<Extent> asked = extent(payload);
  if (!asked) json.fail("has a shape that is too large");
  const std::uint64_t more = asked->elements > there ? asked->elements - there : 0;
  if (asked->end <= there && more <= repeated) {
    repeated -= more;
    return;
  }
  json.fail("has shape " + shape_text(payload.sizes) + ", which asks for more than the " +
            std::to_string(there) + " elements of its record " + in_quotes(payload.record));
}

// No other record may be used as a tensor, because it would be overwritten when the archive is
// written.
std::string record_of(Json path_name, std::string_view folder) {
  const std::string_view prefix = folder == kWeightsFolder ? "weight_" : "tensor_";
  if (!path_name.text().starts_with(prefix)) {
    path_name.fail("is " + in_quotes(path_name.text()) + ", which does not begin with " +
                   in_quotes(prefix));
  }
  return std::string(folder) + path_name.text();
}

Payload parse_payload(Json json, std::string_view folder, const Records& records,
                      std::span<const std::byte> archive, std::uint64_t& repeated) {
  const auto tensor_meta = json.find("tensor_meta");
  if (!tensor_meta) {
    json.fail(
        "is an object of a class of its own, which only its code can make; a model of "
        "tensors alone can be read");
  }
  if (json.at("use_pickle").boolean()) {
    json.fail("is a tensor of a class of its own, which only its code can make");
  }
  const TensorMeta meta = parse_tensor_meta(*tensor_meta);
  if (meta.layout != Layout::strided) json.fail("is sparse; dense tensors can be read");
  Payload payload;
  payload.record = record_of(json.at("path_name"), folder);
  payload.storage = records.at(payload.record).data;
  payload.offset = static_cast<std::uint64_t>(payload.storage.data() - archive.data());
  payload.dtype = meta.dtype;
  payload.sizes = all_known(json, meta.sizes, "size");
  payload.strides = all_known(json, meta.strides, "stride");
  payload.storage_offset = known(json, meta.storage_offset, "storage offset");
  payload.is_param = json.at("is_param").boolean();
  payload.requires_grad = meta.requires_grad;
  if (payload.strides.size() != payload.sizes.size()) json.fail("has another number of strides");
  check_size(json, payload, repeated);
  return payload;
}

}  // namespace

ByName<Payload> parse_payloads(Json json, std::string_view folder, const Records& records,
                               std::span<const std::byte> archive) {
  ByName<Payload> payloads;
  std::uint64_t repeated = kMaxRepeatedElements;
  for (const Json entry : json.at("config").object()) {
    Payload payload = parse_payload(entry, folder, records, archive, repeated);
    if (!payloads.emplace(entry.key(), std::move(payload)).second) entry.fail("is there twice");
  }
  return payloads;
}

}  // namespace decent::pt2
