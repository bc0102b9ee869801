#include "decent/report/page/page.h"

#include <string_view>

#include "decent/core/file.h"
#include "decent/core/version.h"
#include "decent/report/page/page_data.h"

// Defined by page_files.S.
extern "C" {
extern const char decent_page_page[], decent_page_page_end[];
extern const char decent_page_style[], decent_page_style_end[];
extern const char decent_page_chart_style[], decent_page_chart_style_end[];
extern const char decent_page_library[], decent_page_library_end[];
extern const char decent_page_licence[], decent_page_licence_end[];
extern const char decent_page_script[], decent_page_script_end[];
}

namespace decent {
namespace {

// The files from which pages are made, as parts of the program.
struct PageFiles {
  std::string_view page;         // page.html
  std::string_view style;        // page.css
  std::string_view script;       // the .js files, one after the other
  std::string_view library;      // uPlot
  std::string_view chart_style;  // uPlot's
  std::string_view licence;      // uPlot's
};

PageFiles page_files() {
  return {.page = {decent_page_page, decent_page_page_end},
          .style = {decent_page_style, decent_page_style_end},
          .script = {decent_page_script, decent_page_script_end},
          .library = {decent_page_library, decent_page_library_end},
          .chart_style = {decent_page_chart_style, decent_page_chart_style_end},
          .licence = {decent_page_licence, decent_page_licence_end}};
}

// A page loads nothing from anywhere, except that a served page asks its own server for figures.
std::string policy(bool served) {
  return std::string(
             "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; ") +
         "img-src data:; base-uri 'none'; form-action 'none'" +
         (served ? "; connect-src 'self'" : "");
}

// The text that replaces @@name@@ in page.html.
std::string part(std::string_view name, std::span<const RunFolder> folders,
                 const PageOptions& options) {
  const PageFiles files = page_files();
  if (name == "policy") return policy(options.served);
  if (name == "style") return std::string(files.chart_style) + std::string(files.style);
  if (name == "licence") return std::string(files.licence);
  if (name == "library") return std::string(files.library);
  if (name == "script") return std::string(files.script);
  if (name == "data")
    return options.data ? std::string(*options.data) : report_data(folders, options.running);
  return options.served ? "served" : "file";
}

}  // namespace

std::string report_data(std::span<const RunFolder> folders, bool running) {
  std::string text = "{\"program\":\"decent-train " + std::string(version()) + "\",\"runs\":[";
  for (std::size_t i = 0; i < folders.size(); ++i)
    text += (i > 0 ? ",\n" : "\n") + run_as_json(folders[i], running);
  return text + "\n]}";
}

// Marks inside a replacement are not replaced.
std::string report_page(std::span<const RunFolder> folders, const PageOptions& options) {
  const std::string_view page = page_files().page;
  std::string text;
  std::size_t at = 0;
  while (true) {
    const std::size_t begin = page.find("@@", at);
    text += page.substr(at, begin - at);
    if (begin == std::string_view::npos) return text;
    const std::size_t end = page.find("@@", begin + 2);
    text += part(page.substr(begin + 2, end - begin - 2), folders, options);
    at = end + 2;
  }
}

void write_page(const std::filesystem::path& file, std::span<const RunFolder> folders,
                const PageOptions& options) {
  write_file(file, report_page(folders, options));
}

void write_report(const RunFolder& folder, bool running) {
  write_page(folder.report(), {&folder, 1}, {.running = running});
}

}  // namespace decent
