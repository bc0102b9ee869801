// Images and transforms by themselves, for tests that compare them with Pillow and torchvision. An
// array is written as a line with its shape, then its bytes.
//
//     images_run decode FILE CHANNELS
//         pixels, uint8 [height, width, channels]
//     images_run decode_mask FILE
//         classes, uint8 [height, width]
//     images_run sample PATH CHANNELS SIZE INDEX
//         field x of a sample; SIZE is 0, n or height,width
//     images_run list PATH
//         the names of classes in a line, then a line for each label
//     images_run transform SEED EPOCH SAMPLES SHAPE STEPS < array
//         the array, float32 of that shape (c,h,w), after the steps ("resize size=8 / flip p=1"),
//         as sample 0, 1 and so on: as many arrays. An int64 mask (h,w) may follow the array; then
//         each result is followed by its mask, as float32
//     images_run time PATH SIZE SECONDS
//         samples a second, in one thread

#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/text.h"
#include "decent/data/images/decode.h"
#include "decent/data/images/images_source.h"
#include "decent/data/transforms/transform.h"

namespace {

using namespace decent;

void write(const std::vector<std::int64_t>& shape, std::span<const std::byte> bytes) {
  std::cout << shape_text(shape) << '\n';
  std::cout.write(reinterpret_cast<const char*>(bytes.data()),
                  static_cast<std::streamsize>(bytes.size()));
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

std::vector<std::int64_t> integers(const std::string& text) {
  std::vector<std::int64_t> values;
  for (const std::string& part : split(text, ',')) values.push_back(std::stoll(part));
  return values;
}

std::vector<double> numbers(const std::string& text) {
  std::vector<double> values;
  for (const std::string& part : split(text, ',')) values.push_back(std::stod(part));
  return values;
}

OptionValue value_of(const OptionKey& key, const std::string& text) {
  switch (key.type) {
    case OptionType::boolean:
      return text == "true";
    case OptionType::integer:
      return std::int64_t{std::stoll(text)};
    case OptionType::integers:
      return integers(text);
    case OptionType::number:
      return std::stod(text);
    case OptionType::numbers:
      return numbers(text);
    default:
      return text;
  }
}

// "resize size=8"
std::unique_ptr<SampleTransform> transform_of(const std::string& step) {
  std::istringstream words(step);
  std::string name;
  words >> name;
  const Transform row = transform_row(name);
  if (!row.make) throw UserError(name + " is for batches");
  Options given;
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    for (const OptionKey& key : row.keys) {
      if (key.name == word.substr(0, equals))
        given.set(key.name, value_of(key, word.substr(equals + 1)));
    }
  }
  return row.make(with_defaults(row.keys, given));
}

ImagesOptions images(const std::string& path, int channels, const std::string& size) {
  const std::vector<std::int64_t> sides = integers(size);
  ImagesOptions options{.path = path, .form = {.channels = channels, .size = {}}};
  if (sides.at(0) > 0) options.form.size = ImageSize{sides.front(), sides.back()};
  return options;
}

void decode(const std::vector<std::string>& arguments) {
  const MappedFile file(arguments.at(0));
  Pixels pixels;
  decode_image(file.bytes(), arguments[0], std::stoi(arguments.at(1)), pixels);
  write({pixels.height, pixels.width, pixels.channels}, std::as_bytes(std::span(pixels.bytes)));
}

void decode_classes(const std::vector<std::string>& arguments) {
  const MappedFile file(arguments.at(0));
  Pixels mask;
  decode_mask(file.bytes(), arguments[0], mask);
  write({mask.height, mask.width}, std::as_bytes(std::span(mask.bytes)));
}

void sample(const std::vector<std::string>& arguments) {
  const auto source =
      open_images_source(images(arguments.at(0), std::stoi(arguments.at(1)), arguments.at(2)));
  const HostArray array = source->read_one(0, std::stoll(arguments.at(3)));
  write(array.shape, array.bytes);
}

void list(const std::vector<std::string>& arguments) {
  const auto source = open_images_source(images(arguments.at(0), 3, "0"));
  std::cout << join(source->classes()) << '\n';
  for (std::int64_t i = 0; i < source->size(); ++i) {
    std::cout << source->read_one(1, i).as<const std::int64_t>()[0] << '\n';
  }
}

// One after another, as in an epoch.
void transform(const std::vector<std::string>& arguments) {
  const std::vector<std::int64_t> shape = integers(arguments.at(3));
  const std::string bytes(std::istreambuf_iterator<char>(std::cin), {});
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  std::vector<Field> fields = {{"x", DType::float32, shape}};
  const std::byte* mask = begin + fields[0].sample_bytes();
  const std::byte* end = begin + bytes.size();
  std::vector<HostArray> before = {{DType::float32, shape, {begin, mask}}};
  if (mask != end) {
    fields.push_back({.name = "y",
                      .dtype = DType::int64,
                      .shape = {shape.at(1), shape.at(2)},
                      .padding = std::nullopt,
                      .mask_of = "x"});
    before.push_back({DType::int64, fields[1].shape, {mask, end}});
  }
  std::vector<std::unique_ptr<SampleTransform>> steps;
  for (const std::string& step : split(arguments.at(4), '/')) {
    steps.push_back(transform_of(step));
    fields = steps.back()->fields(std::move(fields));
  }
  const auto number = [&](std::size_t i) { return std::stoull(arguments.at(i)); };
  for (std::uint64_t index = 0; index < number(2); ++index) {
    std::vector<HostArray> values = before;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      SampleRandom random(number(0), number(1), index, i);
      steps[i]->apply(values, random);
    }
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].shape != values[i].shape) throw UserError("the shape is not the one foretold");
    }
    write(values[0].shape, values[0].bytes);
    if (values.size() == 1) continue;
    const auto classes = values[1].as<const std::int64_t>();
    const std::vector<float> written(classes.begin(), classes.end());
    write(values[1].shape, std::as_bytes(std::span(written)));
  }
}

void time(const std::vector<std::string>& arguments) {
  const auto source = open_images_source(images(arguments.at(0), 3, arguments.at(1)));
  const auto begin = std::chrono::steady_clock::now();
  std::chrono::duration<double> taken{};
  const std::size_t x = 0;
  std::vector<HostArray> sample(source->fields().size());
  std::int64_t count = 0;
  while (taken.count() < std::stod(arguments.at(2))) {
    source->read_one({&x, 1}, count++ % source->size(), sample);
    taken = std::chrono::steady_clock::now() - begin;
  }
  std::cout << static_cast<double>(count) / taken.count() << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + std::min(argc, 2), argv + argc);
  const std::string command = argc > 1 ? argv[1] : "";
  try {
    if (command == "decode") decode(arguments);
    if (command == "decode_mask") decode_classes(arguments);
    if (command == "sample") sample(arguments);
    if (command == "list") list(arguments);
    if (command == "transform") transform(arguments);
    if (command == "time") time(arguments);
  } catch (const UserError& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
