#include "decent/report/page/page_files.h"

extern "C" {
extern const char decent_page_page[], decent_page_page_end[];
extern const char decent_page_style[], decent_page_style_end[];
extern const char decent_page_chart_style[], decent_page_chart_style_end[];
extern const char decent_page_library[], decent_page_library_end[];
extern const char decent_page_licence[], decent_page_licence_end[];
extern const char decent_page_script[], decent_page_script_end[];
}

namespace decent {

PageFiles page_files() {
  return {.page = {decent_page_page, decent_page_page_end},
          .style = {decent_page_style, decent_page_style_end},
          .script = {decent_page_script, decent_page_script_end},
          .library = {decent_page_library, decent_page_library_end},
          .chart_style = {decent_page_chart_style, decent_page_chart_style_end},
          .licence = {decent_page_licence, decent_page_licence_end}};
}

}  // namespace decent
