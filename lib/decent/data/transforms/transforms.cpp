#include <mutex>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/registry.h"
#include "decent/core/text.h"
#include "decent/data/transforms/built_in.h"
#include "decent/data/transforms/transform.h"

namespace decent {
namespace {

struct Table {
  std::mutex mutex;
  std::vector<Transform> rows = {resize_transform(),
                                 center_crop_transform(),
                                 random_crop_transform(),
                                 random_resized_crop_transform(),
                                 flip_transform(),
                                 color_jitter_transform(),
                                 trivial_augment_transform(),
                                 cutout_transform(),
                                 random_erasing_transform(),
                                 normalize_transform(),
                                 to_float_transform(),
                                 mixup_transform(),
                                 cutmix_transform()};
};

Table& table() {
  static Table transforms;
  return transforms;
}

}  // namespace

void register_transform(Transform transform) {
  if (transform.name.empty()) throw UserError("a transform needs a name");
  if (!transform.make == !transform.make_for_batches) {
    throw UserError("transform '" + transform.name +
                    "': expected one of the functions make and make_for_batches");
  }
  const std::lock_guard lock(table().mutex);
  if (find_named(table().rows, transform.name) != nullptr) {
    throw UserError("there is a transform '" + transform.name + "' already: choose another name");
  }
  table().rows.push_back(std::move(transform));
}

Transform transform_row(std::string_view name) {
  const std::vector<Transform> rows = transform_rows();
  if (const Transform* row = find_named(rows, name)) return *row;
  throw UserError("unknown transform '" + std::string(name) + "'; valid: " + join(names_in(rows)));
}

std::vector<Transform> transform_rows() {
  const std::lock_guard lock(table().mutex);
  return table().rows;
}

}  // namespace decent
