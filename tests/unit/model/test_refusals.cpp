#include <caffe2/serialize/inline_container.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/modules.h"
#include "decent/core/file.h"

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Module;
using testing::Saved;
using testing::TemporaryFolder;

std::string refusal_of_file(const std::filesystem::path& path) {
  const std::string text = testing::refusal([&] { open_model(path).check_trainable(); });
  EXPECT_THAT(text, HasSubstr("'" + path.string() + "'"));
  EXPECT_LE(testing::lines_of(text), 5);
  return text;
}

std::string refusal_of_bytes(const char* name, std::string_view bytes) {
  const TemporaryFolder folder;
  write_file(folder / name, bytes);
  return refusal_of_file(folder / name);
}

// An archive as PyTorch writes them, with these records.
std::string refusal_of_archive(const std::vector<std::string>& records) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "model.pt";
  {
    caffe2::serialize::PyTorchStreamWriter writer(path.string());
    for (const std::string& record : records) writer.writeRecord(record, "x", 1);
    writer.writeEndOfFile();
  }
  return refusal_of_file(path);
}

std::string refusal_of_module(const Module& module) {
  return refusal_of_file(Saved(module).path());
}

const auto kHowToExport = HasSubstr("torch.jit.script(model)");

TEST(RefusedFile, Missing) {
  const TemporaryFolder folder;
  EXPECT_THAT(refusal_of_file(folder / "no.pt"), HasSubstr("does not exist"));
  EXPECT_THAT(refusal_of_file(folder.path()), HasSubstr("is not a file"));
}

TEST(RefusedFile, NotAnArchive) {
  for (const std::string_view bytes : {"", "P", "weights: none", "\x80\x02}q"}) {
    EXPECT_THAT(refusal_of_bytes("model.pt", bytes),
                AllOf(HasSubstr("not a TorchScript file"), kHowToExport));
  }
}

TEST(RefusedFile, OtherFormats) {
  EXPECT_THAT(refusal_of_bytes("m.safetensors", std::string_view("\2\0\0\0\0\0\0\0{}", 10)),
              AllOf(HasSubstr("weights only"), kHowToExport));
}

TEST(RefusedFile, DamagedArchive) {
  const auto damaged = AllOf(HasSubstr("damaged"), kHowToExport);
  EXPECT_THAT(refusal_of_bytes("model.pt", std::string("PK\3\4") + std::string(500, 'x')), damaged);
  const Saved saved(testing::small_module());
  const std::string whole = read_text(saved.path());
  for (const std::size_t kept : {whole.size() / 2, whole.size() - 1, whole.size() - 30}) {
    EXPECT_THAT(refusal_of_bytes("model.pt", std::string_view(whole).substr(0, kept)), damaged);
  }
}

TEST(RefusedFile, ArchivesOfOtherKinds) {
  EXPECT_THAT(refusal_of_archive({"data.pkl", "data/0"}),
              AllOf(HasSubstr("pickled module or a state_dict"), kHowToExport));
  EXPECT_THAT(refusal_of_archive({"models/model.json"}),
              HasSubstr("is a torch.export archive: give its name the ending .pt2"));
  // Enough to look like TorchScript, but nothing in it.
  EXPECT_THAT(refusal_of_archive({"data.pkl", "constants.pkl"}), HasSubstr("cannot be loaded: "));
}

TEST(RefusedModule, WithoutForward) {
  Module module = testing::plain_module();
  module.register_parameter("w", testing::weight({2}), false);
  module.define("def other(self, x):\n    return x + self.w\n");
  EXPECT_THAT(refusal_of_module(module), HasSubstr("no forward method"));
}

TEST(RefusedModule, WithoutTrainableParameter) {
  Module none = testing::plain_module();
  none.define("def forward(self, x):\n    return x\n");
  EXPECT_THAT(refusal_of_module(none), HasSubstr("no trainable parameter"));

  Module frozen = testing::small_module();
  for (const at::Tensor& parameter : frozen.parameters()) parameter.set_requires_grad(false);
  EXPECT_THAT(refusal_of_module(frozen),
              AllOf(HasSubstr("all 3 of them"), HasSubstr("requires_grad_(True)")));
}

TEST(RefusedModule, FrozenForInference) {
  Module module = testing::small_module();
  module.eval();
  EXPECT_THAT(refusal_of_module(torch::jit::freeze(module)), HasSubstr("torch.jit.freeze"));
}

std::string refused_inputs(const std::string& arguments, const std::vector<ForwardInput>& inputs) {
  const Saved saved(
      testing::module_with("def forward(self, " + arguments + "):\n    return self.w\n"));
  const Model model = saved.load();
  return testing::refusal([&] { model.check_signature(inputs); });
}

TEST(Signature, AcceptsWhatForwardTakes) {
  EXPECT_EQ(refused_inputs("x", {{"", "image"}}), "accepted");
  EXPECT_EQ(refused_inputs("x, mask", {{"mask", "m"}, {"x", "image"}}), "accepted");
  EXPECT_EQ(refused_inputs("x, mask: Optional[Tensor] = None", {{"", "x"}}), "accepted");
  EXPECT_EQ(refused_inputs("x, mask: Optional[Tensor] = None, n: int = 2", {{"", "x"}, {"", "m"}}),
            "accepted");
}

TEST(Signature, RefusesTooManyInputs) {
  EXPECT_THAT(refused_inputs("x", {{"", "a"}, {"", "b"}}),
              AllOf(HasSubstr("forward(x: Tensor)"), HasSubstr("2 inputs")));
}

TEST(Signature, NamesTheNearestArgument) {
  EXPECT_THAT(refused_inputs("image, mask", {{"imagee", "a"}, {"mask", "b"}}),
              AllOf(HasSubstr("no argument 'imagee'"), HasSubstr("did you mean 'image'?"),
                    HasSubstr("forward(image: Tensor, mask: Tensor)")));
}

TEST(Signature, NamesAnArgumentThatNothingFeeds) {
  EXPECT_THAT(refused_inputs("x, mask", {{"", "x"}}), HasSubstr("feeds 'mask'"));
  EXPECT_THAT(refused_inputs("x, mask", {{"mask", "x"}}), HasSubstr("feeds 'x'"));
  EXPECT_THAT(refused_inputs("x, n: int", {{"", "x"}}), HasSubstr("feeds 'n'"));
}

TEST(Signature, RefusesToFeedWhatIsNoTensor) {
  EXPECT_THAT(refused_inputs("x, n: int", {{"", "x"}, {"", "n"}}),
              AllOf(HasSubstr("'n' is not a tensor"), HasSubstr("n: int")));
}

}  // namespace
}  // namespace decent
