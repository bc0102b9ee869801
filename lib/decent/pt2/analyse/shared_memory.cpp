#include "decent/pt2/analyse/shared_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent::pt2 {
namespace {

struct StoredView {
  const std::string* name = nullptr;
  const Payload* payload = nullptr;
  bool changes = false;

  std::uint64_t element() const { return size_of(payload->dtype); }
};

using ViewLayout =
    std::tuple<ScalarType, std::vector<std::int64_t>, std::vector<std::int64_t>, std::int64_t>;
// Each view of a record once: tied tensors are one view, which changes if any of them does.
using Views = std::map<ViewLayout, StoredView>;
using ViewsByRecord = std::map<std::string, Views>;

void add(const StoredView& view, Views& views) {
  const Payload& payload = *view.payload;
  const ViewLayout layout = {payload.dtype, payload.sizes, payload.strides, payload.storage_offset};
  StoredView& known = views.try_emplace(layout, view).first->second;
  known.changes |= view.changes;
}

ViewsByRecord views_by_record(const ExportedProgram& program,
                              const std::set<std::string>& written) {
  ViewsByRecord views;
  for (const ByName<Payload>* table : {&program.weights, &program.constants}) {
    for (const auto& [name, payload] : *table) {
      const bool changes = payload.requires_grad || written.count(name) != 0;
      add({&name, &payload, changes}, views[payload.record]);
    }
  }
  return views;
}

// False for most records, which have one view, or views that lie one after the other.
bool ranges_overlap(const Views& views) {
  std::vector<StorageRange> ranges;
  for (const auto& [layout, view] : views) {
    const StorageRange range = view.payload->range();
    ranges.push_back({range.begin * view.element(), range.end * view.element()});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const StorageRange& a, const StorageRange& b) { return a.begin < b.begin; });
  std::uint64_t end = 0;
  for (const StorageRange& each : ranges) {
    if (each.begin < end && each.begin < each.end) return true;
    end = std::max(end, each.end);
  }
  return false;
}

// The owner of each part of a record, in units of the smallest element.
class Owners {
 public:
  explicit Owners(const Views& views) : unit_(smallest_element(views)) {
    const Payload& any = *views.begin()->second.payload;
    owner_of_.resize(any.storage.size() / unit_);
    // Views that change come first, so that unchanged views are checked against them.
    for (const bool changes : {true, false}) {
      for (const auto& [layout, view] : views)
        if (view.changes == changes) add(view);
    }
  }

  /// A view that changes, and the first view that shares elements with it; nullptr if there is
  /// none.
  const StoredView* changing() const { return changing_; }
  const StoredView* other() const { return other_; }

 private:
  static std::uint64_t smallest_element(const Views& views) {
    std::uint64_t smallest = views.begin()->second.element();
    for (const auto& [layout, view] : views) smallest = std::min(smallest, view.element());
    return smallest;
  }

  void add(const StoredView& view) {
    known_.push_back(&view);
    if (view.payload->count() != 0) visit(view, view.payload->range().begin, 0);
  }

  void visit(const StoredView& view, std::uint64_t place, std::size_t dim) {
    const Payload& payload = *view.payload;
    if (dim == payload.sizes.size()) return take(view, place * view.element() / unit_);
    const std::int64_t stride = payload.strides[dim];
    const std::int64_t places = stride == 0 ? 1 : payload.sizes[dim];  // 0: from torch.expand
    for (std::int64_t i = 0; i < places && other_ == nullptr; ++i)
      visit(view, place + static_cast<std::uint64_t>(i * stride), dim + 1);
  }

  void take(const StoredView& view, std::uint64_t first) {
    for (std::uint64_t i = first; i < first + view.element() / unit_; ++i) {
      const StoredView* owner = owner_of_[i] == 0 ? nullptr : known_[owner_of_[i] - 1];
      if (owner != nullptr && owner != &view && owner->changes) {
        changing_ = owner;
        other_ = &view;
        return;
      }
      owner_of_[i] = static_cast<std::uint32_t>(known_.size());
    }
  }

  const std::uint64_t unit_;
  std::vector<const StoredView*> known_;
  std::vector<std::uint32_t> owner_of_;  // 1 + the index in known_
  const StoredView* changing_ = nullptr;
  const StoredView* other_ = nullptr;
};

[[noreturn]] void refuse(const StoredView& changing, const StoredView& other,
                         const std::string& about) {
  throw UserError(about + " holds " + in_quotes(*changing.name) + " and " + in_quotes(*other.name) +
                  " as different views of one memory, of which training changes " +
                  in_quotes(*changing.name) +
                  ": as tensors of their own they would part.\nKeep one of them, and compute the "
                  "other from it in forward: F.linear(x, self.a.weight.t()) for a weight that is "
                  "tied to the transpose of another, self.statistics[0] for a part of a buffer");
}

}  // namespace

void refuse_shared_memory(const ExportedProgram& program, const std::set<std::string>& written,
                          const std::string& about) {
  for (const auto& [record, views] : views_by_record(program, written)) {
    const bool any_changes = std::any_of(views.begin(), views.end(),
                                         [](const auto& each) { return each.second.changes; });
    if (!any_changes || !ranges_overlap(views)) continue;
    const Owners owners(views);
    if (owners.other() != nullptr) refuse(*owners.changing(), *owners.other(), about);
  }
}

}  // namespace decent::pt2
