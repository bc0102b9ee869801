#pragma once
// The files from which pages are made, as parts of the program (page_files.S).

#include <string_view>

namespace decent {

struct PageFiles {
  std::string_view page;         // page.html
  std::string_view style;        // page.css
  std::string_view script;       // the .js files, one after the other
  std::string_view library;      // uPlot
  std::string_view chart_style;  // uPlot's
  std::string_view licence;      // uPlot's
};

PageFiles page_files();

}  // namespace decent
