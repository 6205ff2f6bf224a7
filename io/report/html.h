// Writes pieces of HTML: escaped text, tables, sections, and a page without external resources.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainctl::html {

// Escapes text for an element or a quoted attribute. Bytes that are not UTF-8 become U+FFFD.
std::string escaped(std::string_view text);

// A cell of a table, as HTML; numbers are aligned to the right.
struct Cell {
  std::string html;
  bool number = false;
  std::string style = {};  // CSS
};
Cell text_cell(std::string_view text);
Cell number_cell(std::string_view text);

// Returns a table that can be scrolled if the window is too narrow for it.
std::string table(const std::vector<Cell>& titles, const std::vector<std::vector<Cell>>& rows);

// Returns a section with its heading; "" if the body is empty.
std::string section(std::string_view title, const std::string& body);

// Returns a paragraph; the text is escaped.
std::string paragraph(std::string_view text);

// Returns a whole document. It includes the styles, for light and dark mode and for narrow windows, and loads no other
// files.
std::string page(std::string_view title, const std::string& body);

}  // namespace trainctl::html
