#include "decent/report/elastic_error.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "../support/temporary_folder.h"
#include "decent/core/file.h"

namespace decent {
namespace {

class ElasticError : public ::testing::Test {
 protected:
  ElasticError() { setenv("TORCHELASTIC_ERROR_FILE", file_.c_str(), /*overwrite=*/1); }
  ~ElasticError() override { unsetenv("TORCHELASTIC_ERROR_FILE"); }

  // Throws where the file is not whole.
  std::string message() const {
    return nlohmann::json::parse(read_text(file_)).at("message").at("message");
  }

  const testing::TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_ / "error.json";
};

TEST_F(ElasticError, HoldsTheLastMessage) {
  write_elastic_error("a long message that comes first");
  write_elastic_error("another");
  EXPECT_EQ(message(), "another");
}

TEST_F(ElasticError, IsWholeWhileThreadsWriteIt) {
  const std::string longer(5000, 'a'), shorter(100, 'b');
  write_elastic_error(longer);
  const auto write = [](const std::string& text) {
    for (int i = 0; i < 100; ++i) write_elastic_error(text);
  };
  std::thread one(write, longer), other(write, shorter);
  for (int i = 0; i < 300; ++i) {
    const std::string found = message();
    EXPECT_TRUE(found == longer || found == shorter);
  }
  one.join();
  other.join();
}

TEST_F(ElasticError, IsNobodysConcernWhereItCannotBeWritten) {
  setenv("TORCHELASTIC_ERROR_FILE", "/proc/no/such/folder/error.json", /*overwrite=*/1);
  write_elastic_error("a message");
}

}  // namespace
}  // namespace decent
