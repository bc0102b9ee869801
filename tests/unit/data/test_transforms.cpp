// Transforms: closed forms, what they make of fields, and what they refuse.
// tests/cli/test_transforms.py compares them with torchvision.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <numeric>

#include "../support/refusal.h"
#include "decent/data/transforms/normalize.h"
#include "decent/data/transforms/transform.h"

namespace decent {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatEq;
using testing::refusal;

using Integers = std::vector<std::int64_t>;
using Reals = std::vector<double>;

std::unique_ptr<SampleTransform> made(const std::string& name, const Options& given) {
  const Transform row = transform_row(name);
  return row.make(with_defaults(row.keys, given));
}

HostArray floats(Integers shape, const std::vector<float>& values) {
  HostArray array{DType::float32, std::move(shape), {}};
  const auto bytes = std::as_bytes(std::span(values));
  array.bytes.assign(bytes.begin(), bytes.end());
  return array;
}

std::vector<float> values_of(const HostArray& array) {
  const auto values = array.as<const float>();
  return {values.begin(), values.end()};
}

// The only field, x, after the transform.
HostArray after(SampleTransform& transform, HostArray x) {
  const auto fields = transform.fields({{"x", x.dtype, x.shape}});
  std::vector<HostArray> sample = {std::move(x)};
  SampleRandom random(1, 2, 3, 4);
  transform.apply(sample, random);
  EXPECT_EQ(fields[0].shape, sample[0].shape);
  EXPECT_EQ(fields[0].dtype, sample[0].dtype);
  return sample[0];
}

std::vector<float> after(const std::string& name, const Options& options, Integers shape,
                         const std::vector<float>& values) {
  return values_of(after(*made(name, options), floats(std::move(shape), values)));
}

std::string refused(const std::string& name, const Options& options, Field field) {
  return refusal([&] { made(name, options)->fields({field}); });
}

Integers shape_after(const std::string& name, const Options& options, Integers shape) {
  return made(name, options)->fields({{"x", DType::float32, std::move(shape)}})[0].shape;
}

TEST(SampleRandom, IsAFunctionOfWhereItStands) {
  const auto first = [](std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample,
                        std::uint64_t transform) {
    return SampleRandom(seed, epoch, sample, transform).bits();
  };
  const std::uint64_t here = first(1, 2, 3, 4);
  EXPECT_EQ(here, first(1, 2, 3, 4));
  for (const std::uint64_t other : {first(2, 2, 3, 4), first(1, 1, 3, 4), first(1, 2, 4, 4),
                                    first(1, 2, 3, 3), first(2, 1, 3, 4)})
    EXPECT_NE(here, other);
}

TEST(SampleRandom, DrawsEvenly) {
  constexpr int kDraws = 60'000;
  std::array<int, 6> counts{};
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    SampleRandom random(7, 0, static_cast<std::uint64_t>(i), 0);
    const double u = random.uniform();
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += u;
    ++counts.at(static_cast<std::size_t>(random.integer(6)));
  }
  // Five standard deviations: sqrt(1 / 12 / n), sqrt(n * 5 / 36).
  EXPECT_NEAR(sum / kDraws, 0.5, 5 * 0.00118);
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 6, 5 * 92);
}

TEST(SampleRandom, ReachesBothEndsOfARange) {
  SampleRandom random(0, 0, 0, 0);
  EXPECT_EQ(random.integer(1), 0);
  EXPECT_EQ(random.uniform(2, 2), 2);
  const std::int64_t drawn = random.integer(std::numeric_limits<std::int64_t>::max());
  EXPECT_GE(drawn, 0);
}

TEST(Transforms, AreKnownByTheirNames) {
  std::vector<std::string> names;
  for (const Transform& row : transform_rows()) names.push_back(row.name);
  names.resize(13);  // others may have been registered
  EXPECT_THAT(names, ElementsAre("resize", "center_crop", "random_crop", "random_resized_crop",
                                 "flip", "color_jitter", "trivial_augment", "cutout",
                                 "random_erasing", "normalize", "to_float", "mixup", "cutmix"));
  EXPECT_EQ(
      refusal([] { transform_row("rotate"); }).find("unknown transform 'rotate'; valid: resize, "),
      0U);
}

TEST(Transforms, SayWhatEvaluationLeavesOut) {
  const Options size = {{"size", Integers{4}}};
  EXPECT_FALSE(made("resize", size)->random());
  EXPECT_FALSE(made("center_crop", size)->random());
  EXPECT_FALSE(made("to_float", {})->random());
  for (const char* name : {"random_crop", "random_resized_crop", "cutout"})
    EXPECT_TRUE(made(name, size)->random()) << name;
  for (const char* name : {"flip", "color_jitter", "random_erasing", "trivial_augment"})
    EXPECT_TRUE(made(name, {})->random()) << name;
}

TEST(Transforms, SayWhatTakesTheirPlaceInEvaluation) {
  EXPECT_EQ(made("flip", {})->in_evaluation(), nullptr);
  EXPECT_EQ(made("color_jitter", {})->in_evaluation(), nullptr);
  EXPECT_EQ(made("cutout", {{"size", Integers{4}}})->in_evaluation(), nullptr);
  const Options two = {{"size", Integers{1, 2}}};
  const HostArray row = floats({1, 1, 6}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(values_of(after(*made("random_crop", two)->in_evaluation(), row)), ElementsAre(3, 4));
  const auto middle = made("random_resized_crop", two)->in_evaluation();
  EXPECT_FALSE(middle->random());
  EXPECT_THAT(values_of(after(*middle, row)), ElementsAre(3, 4));
  EXPECT_THAT(values_of(after(*middle, floats({1, 4, 4}, std::vector<float>(16, 0.5F)))),
              ElementsAre(0.5, 0.5));
}

class Twice final : public SampleTransform {
 public:
  std::vector<Field> fields(std::vector<Field> before) override { return before; }
  void apply(std::vector<HostArray>& sample, SampleRandom&) const override {
    for (float& value : sample[0].as<float>()) value *= 2;
  }
};

TEST(Transforms, MayComeFromOutside) {
  const auto make = [](const Options&) { return std::make_unique<Twice>(); };
  register_transform({.name = "twice", .meaning = "Twice.", .keys = {}, .make = make});
  EXPECT_THAT(after("twice", {}, {2}, {1, 3}), ElementsAre(2, 6));
  const auto again = [&](const std::string& name) {
    return refusal(
        [&] { register_transform({.name = name, .meaning = {}, .keys = {}, .make = make}); });
  };
  EXPECT_EQ(again("twice"), "there is a transform 'twice' already: choose another name");
  EXPECT_EQ(again("flip"), "there is a transform 'flip' already: choose another name");
  EXPECT_EQ(again(""), "a transform needs a name");
  EXPECT_EQ(refusal([] {
              register_transform({.name = "none", .meaning = {}, .keys = {}, .make = nullptr});
            }),
            "transform 'none': expected one of the functions make and make_for_batches");
}

TEST(Transforms, ChangeTheFieldThatIsNamed) {
  const auto flip = made("flip", {{"p", 1.0}, {"field", std::string("image")}});
  std::vector<HostArray> sample = {floats({1, 1, 2}, {1, 2}), floats({1, 1, 2}, {3, 4})};
  flip->fields({{"x", DType::float32, {1, 1, 2}}, {"image", DType::float32, {1, 1, 2}}});
  SampleRandom random(0, 0, 0, 0);
  flip->apply(sample, random);
  EXPECT_THAT(values_of(sample[0]), ElementsAre(1, 2));
  EXPECT_THAT(values_of(sample[1]), ElementsAre(4, 3));
  EXPECT_EQ(refused("flip", {{"field", std::string("image")}}, {"x", DType::float32, {1, 1, 2}}),
            "transform flip: the data has no field 'image'; it has: x");
}

TEST(Transforms, OfImagesRefuseOtherFields) {
  for (const char* name : {"flip", "color_jitter"}) {
    const std::string who = std::string("transform ") + name + ": field 'x' is ";
    EXPECT_EQ(refused(name, {}, {"x", DType::float32, {4, 5}}),
              who + "float32[4, 5]; expected an image, float32 [channels, height, width]");
    EXPECT_EQ(refused(name, {}, {"x", DType::uint8, {3, 5, 5}}),
              who + "uint8[3, 5, 5]; expected float32: put to_float in front of it");
    EXPECT_EQ(refused(name, {}, {"x", DType::int64, {3, 5, 5}}),
              who + "int64[3, 5, 5]; expected float32");
  }
  for (const std::string name : {"color_jitter", "trivial_augment"}) {
    EXPECT_EQ(refused(name, {}, {"x", DType::float32, {4, 5, 5}}),
              "transform " + name + ": field 'x' has 4 channels; expected 1 or 3");
  }
}

TEST(Resize, HalvesByTheMeanOfATriangle) {
  // The triangle reaches over 4 inputs: shares 1, 3, 3, 1 of 8; at the border 3, 3, 1 of 7.
  EXPECT_THAT(after("resize", {{"size", Integers{1, 2}}}, {1, 1, 4}, {0, 0, 7, 7}),
              ElementsAre(FloatEq(1), FloatEq(6)));
}

TEST(Resize, OfOneColourIsThatColour) {
  const std::vector<float> values(3 * 17 * 5, 0.625F);
  EXPECT_THAT(after("resize", {{"size", Integers{40, 3}}}, {3, 17, 5}, values),
              Each(FloatEq(0.625F)));
}

TEST(Resize, KeepsTheProportionOfTheShorterSide) {
  const Options eight = {{"size", Integers{8}}};
  EXPECT_THAT(shape_after("resize", eight, {3, 10, 25}), ElementsAre(3, 8, 20));
  EXPECT_THAT(shape_after("resize", eight, {1, 33, 16}), ElementsAre(1, 16, 8));
  EXPECT_THAT(shape_after("resize", eight, {3, kAnyExtent, kAnyExtent}),
              ElementsAre(3, kAnyExtent, kAnyExtent));
  EXPECT_THAT(shape_after("resize", {{"size", Integers{8, 9}}}, {3, kAnyExtent, kAnyExtent}),
              ElementsAre(3, 8, 9));
}

TEST(Resize, RefusesWhatBecomesAbsurd) {
  const auto resize = made("resize", {{"size", Integers{1000}}});
  resize->fields({{"x", DType::float32, {1, kAnyExtent, kAnyExtent}}});
  std::vector<HostArray> sample = {floats({1, 1, 200'000}, std::vector<float>(200'000))};
  SampleRandom random(0, 0, 0, 0);
  EXPECT_EQ(refusal([&] { resize->apply(sample, random); }),
            "transform resize: an image of [1, 200000] would become [1000, 200000000], more than "
            "178956970 pixels");
}

TEST(Crops, TakeThatPart) {
  std::vector<float> image(12);
  std::iota(image.begin(), image.end(), 0.0F);  // 3 rows of 4
  EXPECT_THAT(after("center_crop", {{"size", Integers{1, 2}}}, {1, 3, 4}, image),
              ElementsAre(5, 6));
  EXPECT_THAT(after("center_crop", {{"size", Integers{3, 6}}}, {1, 1, 4}, {1, 2, 3, 4}),
              ElementsAreArray({0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_THAT(after("random_crop", {{"size", Integers{3, 4}}}, {1, 3, 4}, image),
              ElementsAreArray(image));
}

TEST(Crops, RefuseSizesThatAreNone) {
  const std::string size = "size: expected n or [height, width], not 3 values";
  const Options three = {{"size", Integers{1, 2, 3}}};
  for (const std::string name : {"center_crop", "random_crop", "random_resized_crop", "cutout"})
    EXPECT_EQ(refusal([&] { made(name, three); }), "transform " + name + ": " + size);
  EXPECT_EQ(
      refusal([] {
        made("random_crop", {{"size", Integers{2}}, {"padding", Integers{1, 2, 3}}});
      }),
      "transform random_crop: padding: expected n, [left and right, top and bottom] or [left, "
      "top, right, bottom], not 3 values");
  EXPECT_EQ(refusal([] {
              made("random_resized_crop", {{"size", Integers{2}}, {"scale", Reals{0.5, 0.1}}});
            }),
            "transform random_resized_crop: scale: expected [least, most]");
}

TEST(Crops, RefuseImagesThatAreTooSmallBeforeTheFirstStep) {
  const Options four = {{"size", Integers{4}}};
  EXPECT_EQ(refused("random_crop", four, {"x", DType::float32, {3, 9, 3}}),
            "transform random_crop: an image of [9, 3] is too small for a crop of [4, 4]; give "
            "padding, or pad_if_needed: true");
  EXPECT_THAT(
      shape_after("random_crop", {{"size", Integers{4}}, {"padding", Integers{1}}}, {3, 9, 3}),
      ElementsAre(3, 4, 4));
}

TEST(RandomErasing, RefusesValuesThatAreNone) {
  const std::string who = "transform random_erasing: ";
  const auto with = [](const NamedOption& option) {
    return refusal([&] { made("random_erasing", {option}); });
  };
  for (const char* value : {"black", "", "1x", "nan"}) {
    EXPECT_EQ(with({"value", std::string(value)}),
              who + "value: expected a number or random, not '" + value + "'");
  }
  EXPECT_EQ(with({"scale", Reals{0.5, 0.1}}), who + "scale: expected [least, most]");
  EXPECT_EQ(with({"ratio", Reals{1}}), who + "ratio: expected [least, most]");
}

TEST(ColorJitter, RefusesFactorsThatAreNone) {
  const std::string who = "transform color_jitter: ";
  const auto with = [](const std::string& key, const Reals& values) {
    return refusal([&] { made("color_jitter", {{key, values}}); });
  };
  EXPECT_EQ(with("brightness", {-1}), who + "brightness: expected a number that is not negative");
  EXPECT_EQ(with("contrast", {-1, 2}),
            who + "contrast: expected values that are not negative, the lower one first");
  EXPECT_EQ(with("saturation", {2, 1}),
            who + "saturation: expected values that are not negative, the lower one first");
  EXPECT_EQ(with("hue", {0.6}), who + "hue: expected values from -0.5 to 0.5, the lower one first");
  EXPECT_EQ(with("hue", {1, 2, 3}), who + "hue: expected a number or [low, high]");
}

TEST(Normalize, GoesByThePlacesOfTheFirstDimension) {
  const Options two = {{"mean", Reals{1, 2}}, {"std", Reals{2, 4}}};
  EXPECT_THAT(after("normalize", two, {2, 1, 2}, {1, 3, 2, 10}), ElementsAre(0, 1, 0, 2));
  EXPECT_THAT(after("normalize", two, {2}, {5, 4}), ElementsAre(2, 0.5));
  const Options one = {{"mean", Reals{1}}, {"std", Reals{2}}};
  EXPECT_THAT(after("normalize", one, {3}, {5, 4, 1}), ElementsAre(2, 1.5, 0));
  EXPECT_THAT(after("normalize", one, {}, {5}), ElementsAre(2));
}

TEST(Normalize, RefusesWhatDoesNotFit) {
  const auto with = [](const Reals& mean, const Reals& std) {
    return refusal([&] { make_normalize({.mean = mean, .std = std}); });
  };
  const double none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(with({0}, {0}), "transform normalize: std: expected numbers above zero");
  EXPECT_EQ(with({0}, {1e-60}), "transform normalize: std: expected numbers above zero");
  EXPECT_EQ(with({none}, {1}), "transform normalize: mean: expected numbers that are finite");
  EXPECT_EQ(with({}, {1}), "transform normalize: mean and std: expected at least one number each");
  EXPECT_EQ(with({1, 2}, {1, 2, 3}), "transform normalize: mean has 2 values, std has 3");
  EXPECT_EQ(refused("normalize", {{"mean", Reals{1, 2}}, {"std", Reals{1}}},
                    {"x", DType::float32, {3, 8, 8}}),
            "transform normalize: mean has 2 values, field 'x' is of [3, 8, 8]: expected 1 or 3");
  EXPECT_EQ(refused("normalize", {{"mean", Reals{1}}, {"std", Reals{1}}}, {"x", DType::int64, {3}}),
            "transform normalize: field 'x' is int64; expected float32");
}

TEST(ToFloat, DividesBy255) {
  HostArray bytes{DType::uint8, {3}, {std::byte{0}, std::byte{51}, std::byte{255}}};
  EXPECT_THAT(values_of(after(*made("to_float", {}), bytes)), ElementsAre(0.0F, 0.2F, 1.0F));
  EXPECT_EQ(refused("to_float", {}, {"x", DType::float32, {3}}),
            "transform to_float: field 'x' is float32; expected uint8");
}

}  // namespace
}  // namespace decent
