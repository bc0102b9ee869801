#pragma once
// Pages that show runs: one HTML file that needs nothing else (docs/report.md).

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "decent/runfolder/run_folder.h"

namespace decent {

struct PageOptions {
  /// This process is the run.
  bool running = false;
  /// The page asks the server that it came from for new figures.
  bool served = false;
  /// The result of report_data() for the runs, if the caller has it.
  std::optional<std::string_view> data = {};
};

/// A page that shows one run, or compares several. Folders in which nothing can be read are shown
/// as such.
std::string report_page(std::span<const RunFolder> folders, const PageOptions& options = {});

/// The data of the runs as in report_page, for a page that is already open.
std::string report_data(std::span<const RunFolder> folders, bool running = false);

/// Writes a page. Throws WriteError.
void write_page(const std::filesystem::path& file, std::span<const RunFolder> folders,
                const PageOptions& options = {});

/// Writes report.html of a run into its folder. Throws WriteError.
void write_report(const RunFolder& folder, bool running);

}  // namespace decent
