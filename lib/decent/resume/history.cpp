#include "decent/resume/history.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <system_error>
#include <tuple>
#include <utility>

#include "decent/checkpoint/checksum.h"
#include "decent/comm/gather.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/runfolder/metrics_file.h"

namespace decent {

/// What tells whose history is the longest, and whether two are alike.
struct HistoryState {
  bool may_have = false;
  std::int64_t last_step = 0;
  std::uint64_t bytes = 0;  // of the metrics
  std::string checksum;     // of the metrics and run.json
};

/// The texts of both files.
struct HistoryTexts {
  std::string metrics;
  std::string run;
};

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HistoryState, may_have, last_step, bytes, checksum)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HistoryTexts, metrics, run)

namespace {

std::string text_if_there(const std::filesystem::path& file) {
  return std::filesystem::exists(file) ? read_text(file) : std::string();
}

HistoryTexts texts_in(const RunFolder& folder) {
  return {.metrics = text_if_there(folder.metrics()), .run = text_if_there(folder.run())};
}

HistoryState state_in(const RunFolder& folder, bool may_have) {
  const HistoryTexts texts = texts_in(folder);
  return {.may_have = may_have,
          .last_step = last_step_in(folder.metrics()),
          .bytes = texts.metrics.size(),
          .checksum = checksum_of(texts.metrics) + checksum_of(texts.run)};
}

// The rank of the worker whose history counts. Of equal ones the lowest rank's.
std::size_t source_of(const std::vector<HistoryState>& states) {
  const auto length = [](const HistoryState& state) {
    return std::tuple(state.may_have, state.last_step, state.bytes);
  };
  std::size_t longest = Team::kSpeaker;
  for (std::size_t rank = 0; rank < states.size(); ++rank) {
    if (states[rank].may_have && length(states[rank]) > length(states[longest])) longest = rank;
  }
  return longest;
}

}  // namespace

AddedLines lines_from(const std::filesystem::path& metrics, std::uint64_t begin) {
  std::ifstream file(metrics, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(begin));
  std::string text{std::istreambuf_iterator<char>(file), {}};
  text.erase(text.rfind('\n') + 1);
  return {.begin = begin, .text = std::move(text)};
}

void put_lines(const std::filesystem::path& metrics, const AddedLines& lines) {
  MetricsFile file(metrics);
  std::error_code failed;
  if (std::filesystem::file_size(metrics, failed) > lines.begin && !failed)
    std::filesystem::resize_file(metrics, lines.begin, failed);
  if (failed) throw WriteError("cannot write '" + metrics.string() + "': " + failed.message());
  file.append(lines.text);
  file.sync();
}

void share_history(const Team& team, const FolderLeaders& leaders, const RunFolder& folder,
                   bool may_have) {
  if (!leaders.has_several_folders()) return;
  const std::vector<HistoryState> states =
      team.agree("history", [&] { return state_in(folder, may_have && leaders.leads(team)); });
  const std::size_t source = source_of(states);
  const auto differs = [&](int leader) {
    return states[static_cast<std::size_t>(leader)].checksum != states[source].checksum;
  };
  if (std::ranges::none_of(leaders.all(), differs)) return;
  const bool gives = team.rank() == static_cast<int>(source);
  const HistoryTexts texts = team.agree(
      "history/texts", [&] { return gives ? texts_in(folder) : HistoryTexts{}; })[source];
  team.agree("history/kept", [&] {
    if (!leaders.leads(team) || !differs(team.rank())) return;
    write_file(folder.metrics(), texts.metrics);
    write_file(folder.run(), texts.run);
  });
}

void share_run_file(const Team& team, const FolderLeaders& leaders, const RunFolder& folder) {
  if (!leaders.has_several_folders()) return;
  const std::string text = team.agree("run.json/text", [&] {
    return team.speaks() ? read_text(folder.run()) : std::string();
  })[Team::kSpeaker];
  team.agree("run.json/kept", [&] {
    if (leaders.leads(team) && !team.speaks()) write_file(folder.run(), text);
  });
}

}  // namespace decent
