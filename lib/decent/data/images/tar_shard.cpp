#include "decent/data/images/tar_shard.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/text.h"
#include "decent/data/formats/tar.h"
#include "decent/data/images/images_source.h"

namespace decent {
namespace {

class ShardReader {
 public:
  ShardReader(std::span<const std::byte> archive, const std::string& file,
              const ShardReading& reading)
      : archive_(archive), file_(file), reading_(reading) {}

  std::vector<ShardSample> samples() && {
    for_each_tar_member(archive_, file_, [&](const TarMember& member) { add(member); });
    end_sample();
    if (samples_.empty()) throw UserError("'" + file_ + "' has no samples");
    return std::move(samples_);
  }

 private:
  void add(const TarMember& member) {
    const auto name = name_in_sample(member.name);
    if (!name) return;
    if (endings_.empty() || name->key != key_) begin_sample(name->key);
    if (std::find(endings_.begin(), endings_.end(), name->ending) != endings_.end())
      wrong_member(member, "the sample has two of this ending");
    endings_.push_back(name->ending);
    const auto& images = reading_.images;
    if (std::find(images.begin(), images.end(), name->ending) != images.end()) add_image(member);
    if (name->ending == reading_.label) add_label(member);
  }

  void begin_sample(const std::string& key) {
    end_sample();
    key_ = key;
    if (keys_.insert(key).second) return;
    wrong_sample(
        "its members are not neighbours, or two samples have this key; tar --sort=name packs "
        "members in order");
  }

  void end_sample() {
    if (endings_.empty()) return;
    if (sample_.name.empty())
      wrong_sample("it has no image, ." + join(reading_.images, " or .") + has() + advice_on_ids());
    if (reading_.label && !label_) {
      wrong_sample("it has no label, ." + *reading_.label + has() +
                   " (`label` names the ending; null: there are no labels)");
    }
    if (label_) sample_.label = std::move(*label_);
    samples_.push_back(std::exchange(sample_, {}));
    label_.reset();
    endings_.clear();
  }

  void add_image(const TarMember& member) {
    if (!sample_.name.empty())
      wrong_member(member, "the second image of its sample; say which with `image`");
    check_size(member, kMostImageBytes, "an image");
    sample_.name = member.name;
    sample_.offset = member.offset;
    sample_.size = member.size;
  }

  void add_label(const TarMember& member) {
    check_size(member, kMostLine, "a label");
    const auto bytes = archive_.subspan(member.offset, member.size);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    label_ = reading_.json_key ? label_in_json(member, text) : std::string(without_blanks(text));
    if (label_->empty()) wrong_member(member, "the label is empty");
    if (!is_utf8(*label_)) {
      wrong_member(member, "the label " + in_quotes(*label_) + " is not UTF-8");
    }
  }

  std::string label_in_json(const TarMember& member, std::string_view text) const {
    const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) wrong_member(member, "not a JSON object");
    const auto value = json.find(*reading_.json_key);
    if (value == json.end()) wrong_member(member, "no key " + in_quotes(*reading_.json_key));
    if (value->is_number_integer()) return value->dump();
    if (value->is_string()) return std::string(without_blanks(value->get<std::string>()));
    wrong_member(member, in_quotes(*reading_.json_key) + " is neither a whole number nor a text");
  }

  // As Python's strip(), because a shell's echo ends a label with a line feed.
  static std::string_view without_blanks(std::string_view text) {
    constexpr std::string_view kBlank = " \t\r\n";
    const std::size_t begin = std::min(text.find_first_not_of(kBlank), text.size());
    return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
  }

  void check_size(const TarMember& member, std::size_t most, const char* what) const {
    if (member.size <= most) return;
    wrong_member(member, "it has " + std::to_string(member.size) +
                             " bytes; the most that is read of " + what + " is " +
                             std::to_string(most));
  }

  std::string advice_on_ids() const {
    const bool has_array = std::find(endings_.begin(), endings_.end(), "npy") != endings_.end();
    return has_array ? "; `format: tokens` reads shards of token ids" : "";
  }

  std::string has() const {
    constexpr std::size_t kShown = 8;
    return "; its neighbouring members end in " + on_one_line(some_of(endings_, kShown));
  }

  [[noreturn]] void wrong_sample(const std::string& problem) const {
    throw UserError("'" + file_ + "', sample " + in_quotes(key_) + ": " + problem);
  }
  [[noreturn]] void wrong_member(const TarMember& member, const std::string& problem) const {
    throw UserError("'" + file_ + "', member " + in_quotes(member.name) + ": " + problem);
  }

  std::span<const std::byte> archive_;
  const std::string& file_;
  const ShardReading& reading_;
  std::vector<ShardSample> samples_;
  std::unordered_set<std::string> keys_;  // of all samples so far
  // The sample whose members are read.
  std::string key_;
  std::vector<std::string> endings_;  // of its members so far; empty: there is none yet
  ShardSample sample_;
  std::optional<std::string> label_;
};

}  // namespace

std::vector<ShardSample> read_tar_shard(std::span<const std::byte> archive, const std::string& file,
                                        const ShardReading& reading) {
  return ShardReader(archive, file, reading).samples();
}

}  // namespace decent
