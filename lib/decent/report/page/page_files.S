// The files of pages (see page.cpp), as read-only data of the program.

#define FILE_OF_PAGE(name, path)   \
  .global decent_page_##name;      \
  .hidden decent_page_##name;      \
  .global decent_page_##name##_end; \
  .hidden decent_page_##name##_end; \
  decent_page_##name:              \
  .incbin path;                    \
  decent_page_##name##_end:

  .section .rodata
FILE_OF_PAGE(page, "page.html")
FILE_OF_PAGE(style, "page.css")
FILE_OF_PAGE(chart_style, "uPlot.min.css")
FILE_OF_PAGE(library, "uPlot.iife.min.js")
FILE_OF_PAGE(licence, "LICENSE")
// In the order in which they are run.
  .global decent_page_script
  .hidden decent_page_script
  .global decent_page_script_end
  .hidden decent_page_script_end
decent_page_script:
  .incbin "text.js"
  .incbin "run.js"
  .incbin "chart.js"
  .incbin "charts.js"
  .incbin "tables.js"
  .incbin "compare.js"
  .incbin "page.js"
decent_page_script_end:

  .section .note.GNU-stack, "", %progbits
