// Images and labels in tar archives, as WebDataset packs them.

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/host.h"
#include "decent/core/text.h"
#include "decent/data/built_in.h"
#include "decent/data/formats/tar.h"
#include "decent/data/images/images_source.h"
#include "decent/data/images/tar_shard.h"
#include "decent/data/shards.h"

namespace decent {
namespace {

struct Shard {
  MappedFile file;
  std::vector<ShardSample> samples;
};

Shard read_shard(const std::filesystem::path& path, const ShardReading& reading) {
  Shard shard{.file = MappedFile(path), .samples = {}};
  const std::span<const std::byte> bytes = shard.file.bytes();
  // Without this the system reads ahead around each header, up to the whole shard. An image is in
  // one piece, for which reading ahead is right.
  const auto advise = [&](int advice) {
    ::madvise(const_cast<std::byte*>(bytes.data()), bytes.size(), advice);
  };
  advise(MADV_RANDOM);
  shard.samples = read_tar_shard(bytes, path.string(), reading);
  advise(MADV_NORMAL);
  return shard;
}

// In the order of `paths`. Several at a time, since a header is a read that waits for the disk or
// the network. The first error in that order is thrown, as if they had been read one by one.
std::vector<Shard> read_shards(const Paths& paths, const ShardReading& reading) {
  if (paths.empty()) throw UserError("path: expected at least one file");
  std::vector<std::optional<Shard>> shards(paths.size());
  std::vector<std::exception_ptr> errors(paths.size());
  std::atomic<std::size_t> next = 0;
  const auto read_some = [&] {
    for (std::size_t i = next++; i < paths.size(); i = next++) {
      try {
        shards[i].emplace(read_shard(paths[i], reading));
      } catch (...) {
        errors[i] = std::current_exception();
        next = paths.size();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    const auto most = static_cast<std::size_t>(usable_processors());
    while (threads.size() + 1 < std::min(most, paths.size())) threads.emplace_back(read_some);
    read_some();
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  std::vector<Shard> all;
  for (std::optional<Shard>& shard : shards) all.push_back(std::move(*shard));
  return all;
}

// A member as if the archive were a folder.
std::string place_text(const MappedFile& shard, std::string_view member) {
  return shard.path().string() + "/" + std::string(member);
}

// Where the file of an image is.
struct ImagePlace {
  std::size_t shard = 0, offset = 0, size = 0;
};

class ShardImages final : public ImagesSource {
 public:
  ShardImages(ImageListing listing, const ImageForm& form, std::vector<ImagePlace> places,
              std::vector<MappedFile> shards)
      : ImagesSource(std::move(listing), form),
        places_(std::move(places)),
        shards_(std::move(shards)) {}

  SampleOrigin origin_of(std::int64_t index) const override { return {.file = name(index)}; }

 private:
  std::string read_file(std::int64_t index, std::vector<std::byte>& content) const override {
    const ImagePlace& place = place_of(index);
    content.resize(place.size);
    shards_[place.shard].copy(place.offset, content);
    return name(index);
  }

  const ImagePlace& place_of(std::int64_t index) const {
    return places_[static_cast<std::size_t>(index)];
  }
  std::string name(std::int64_t index) const {
    return place_text(shards_[place_of(index).shard], listing().name(index));
  }

  std::vector<ImagePlace> places_;
  std::vector<MappedFile> shards_;
};

[[noreturn]] void wrong_label(const std::vector<Shard>& shards, std::size_t sample,
                              const std::string& problem) {
  auto shard = shards.begin();
  for (; sample >= shard->samples.size(); ++shard) sample -= shard->samples.size();
  throw UserError("'" + place_text(shard->file, shard->samples[sample].name) + "': " + problem);
}

NumberedLabels labels_in(const std::vector<Shard>& shards, const ClassNumbers& numbers) {
  std::vector<std::string> labels;
  for (const Shard& shard : shards) {
    for (const ShardSample& sample : shard.samples) labels.push_back(sample.label);
  }
  return numbered_labels(labels, numbers, [&](std::size_t index, const std::string& problem) {
    wrong_label(shards, index, problem);
  });
}

ShardReading shard_reading(const Options& options, bool labels) {
  constexpr std::string_view kJson = "json.";
  ShardReading reading;
  reading.images = options.get_if<std::vector<std::string>>("image").value_or(
      std::vector<std::string>{"jpg", "jpeg", "png", "webp"});
  for (std::string& ending : reading.images) ending = lower_case(ending);
  const auto label = options.get_if<std::string>("label");
  if (!labels || !label) return reading;
  if (*label == "json" || *label == kJson)
    throw UserError("webdataset: label: " + *label + " names no key: expected json.KEY");
  const bool in_json = label->starts_with(kJson);
  reading.label = in_json ? "json" : lower_case(*label);
  if (in_json) reading.json_key = label->substr(kJson.size());
  return reading;
}

std::unique_ptr<Source> source_of(std::vector<Shard> shards, const ImageForm& form,
                                  NumberedLabels labels) {
  ImageListing listing("");
  std::vector<ImagePlace> places;
  std::vector<MappedFile> files;
  for (Shard& shard : shards) {
    for (const ShardSample& sample : shard.samples) {
      listing.add(sample.name, form.labels ? labels.numbers[places.size()] : 0);
      places.push_back({files.size(), sample.offset, sample.size});
    }
    files.push_back(std::move(shard.file));
  }
  listing.set_classes(std::move(labels.classes));
  return std::make_unique<ShardImages>(std::move(listing), form, std::move(places),
                                       std::move(files));
}

std::unique_ptr<Source> open_webdataset_as(const Options& options, const Reading& reading) {
  ImageForm form = image_form(options, reading, "webdataset");
  const ShardReading of_shard = shard_reading(options, form.labels);
  form.labels = of_shard.label.has_value();
  std::vector<Shard> shards = read_shards(expand_globs(options.get<Paths>("path")), of_shard);
  NumberedLabels labels;
  if (form.labels) labels = labels_in(shards, {.known = reading.classes, .where = reading.where});
  return source_of(std::move(shards), form, std::move(labels));
}

std::unique_ptr<Source> open_webdataset(const Options& options) {
  return open_webdataset_as(options, {});
}

}  // namespace

DataFormat webdataset_format() {
  std::vector<OptionKey> keys = {
      path_key("A shard (.tar), a list of shards, a glob or braces (`train-{0000..0127}.tar`)."),
      {.name = "image",
       .type = OptionType::texts,
       .meaning = "Endings of the members that are images, without the dot; each sample has one of "
                  "them. null: jpg, jpeg, png or webp.",
       .fallback = kNull},
      {.name = "label",
       .type = OptionType::text,
       .meaning =
           "Ending of the member whose text is the label (`cls`, `txt`), or `json.KEY` for a "
           "value in the sample's .json. null: there is no y.",
       .fallback = std::string("cls"),
       .takes_null = true}};
  for (OptionKey& key : image_form_keys()) keys.push_back(std::move(key));
  return {.name = "webdataset",
          .keys = std::move(keys),
          .open = open_webdataset,
          .open_as = open_webdataset_as};
}

}  // namespace decent
