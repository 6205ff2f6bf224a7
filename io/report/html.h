// Pieces of HTML: escaped text, tables, and the frame of a page that needs nothing beside itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainctl::html {

// Text for an element or an attribute in quotes. Bytes that are not UTF-8 become U+FFFD.
std::string escaped(std::string_view text);

// A cell of a table, as HTML; numbers stand at the right.
struct Cell {
  std::string html;
  bool number = false;
  std::string style = {};  // CSS
};
Cell text_cell(std::string_view text);
Cell number_cell(std::string_view text);

// A table that can be scrolled where the window is too narrow for it. Titles are HTML.
std::string table(const std::vector<Cell>& titles, const std::vector<std::vector<Cell>>& rows);

// A section with its heading; "" where the body is empty.
std::string section(std::string_view title, const std::string& body);

// A paragraph of text.
std::string paragraph(std::string_view text);

// A whole document: styles for light and dark and for narrow windows are inside, and the page asks no other place for
// anything.
std::string page(std::string_view title, const std::string& body);

}  // namespace trainctl::html
