#pragma once
// Pages that show runs: one HTML file that needs nothing else (docs/report.md).

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "decent/report/run_folder.h"

namespace decent {

struct PageOptions {
  /// This process is the run.
  bool running = false;
  /// The page asks the server that it came from for new figures.
  bool served = false;
  /// What report_data() says of the runs, for callers that have it.
  std::optional<std::string_view> data = {};
};

/// A page of one run, or one that compares several. Folders of which nothing can be read are shown
/// as such.
std::string report_page(std::span<const RunFolder> folders, const PageOptions& options = {});

/// The runs as report_page has them, for a page that is open already.
std::string report_data(std::span<const RunFolder> folders, bool running = false);

/// Writes a page. Throws WriteError.
void write_page(const std::filesystem::path& file, std::span<const RunFolder> folders,
                const PageOptions& options = {});

/// Writes report.html of a run into its folder. Throws WriteError.
void write_report(const RunFolder& folder, bool running);

}  // namespace decent
