// Writes HTML, and holds the style of all pages.
#include "io/report/html.h"

#include "core/base/format.h"
#include "core/base/utf8.h"

namespace trainctl::html {
namespace {

// Curves have the colours of Okabe and Ito, which colour-blind people can distinguish, too.
constexpr std::string_view styles = R"(
:root { color-scheme: light dark; --back: #ffffff; --card: #f6f7f9; --ink: #1b1f24; --soft: #5b6570; --line: #d9dee4;
  --heat: 0, 114, 178; --good: #1a7f37; --bad: #cf222e;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #cc79a7; --c4: #e69f00; --c5: #56b4e9; --c6: #8a7f00; --c7: #6f6f6f; }
@media (prefers-color-scheme: dark) {
  :root { --back: #12161b; --card: #1b2129; --ink: #e6eaef; --soft: #9aa5b1; --line: #323b46; --heat: 86, 180, 233;
    --good: #57c97a; --bad: #ff7b72; --c0: #56b4e9; --c1: #ff8b3d; --c2: #2fc79c; --c3: #e59ac4; --c4: #f0b429;
    --c5: #8ecbf0; --c6: #d8cb3a; --c7: #b5b5b5; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 76rem; background: var(--back); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0.5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 0.5rem; }
h3 { font-size: 0.95rem; margin: 0; }
p { margin: 0.4rem 0; }
.soft { color: var(--soft); }
.good { color: var(--good); } .bad { color: var(--bad); }
.grid { display: grid; gap: 0.75rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
.tiles { display: grid; gap: 0.75rem; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 0.6rem 0.8rem; min-width: 0; }
.tile b { display: block; font-size: 1.25rem; overflow-wrap: anywhere; }
.sample img { display: block; width: 100%; image-rendering: pixelated; border-radius: 4px; margin-bottom: 0.4rem; }
.sample .soft { display: block; font-size: 0.8rem; }
.legend { font-size: 0.8rem; color: var(--soft); }
.legend span { margin-right: 0.9rem; white-space: nowrap; }
.legend i { display: inline-block; width: 0.9rem; height: 0.2rem; margin-right: 0.3rem; vertical-align: middle; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
svg .axis { stroke: var(--line); stroke-width: 1; }
svg polyline { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9rem; }
th, td { padding: 0.25rem 0.7rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { color: var(--soft); font-weight: 600; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 0.7rem; overflow-x: auto;
  font: 13px/1.45 ui-monospace, monospace; margin: 0.4rem 0; }
summary { cursor: pointer; color: var(--soft); }
)";

std::string row_of(const std::vector<Cell>& cells, std::string_view tag) {
  std::string row = "<tr>";
  for (const Cell& cell : cells) {
    row += format("<{}", tag);
    if (cell.number) row += " class=\"number\"";
    if (!cell.style.empty()) row += format(" style=\"{}\"", cell.style);
    row += format(">{}</{}>", cell.html, tag);
  }
  return row + "</tr>\n";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : valid_utf8(text)) {
    switch (c) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

Cell text_cell(std::string_view text) { return {escaped(text)}; }
Cell number_cell(std::string_view text) { return {escaped(text), true}; }

std::string table(const std::vector<Cell>& titles, const std::vector<std::vector<Cell>>& rows) {
  std::string text = "<div class=\"scroll\"><table>\n" + row_of(titles, "th");
  for (const std::vector<Cell>& row : rows) text += row_of(row, "td");
  return text + "</table></div>\n";
}

std::string section(std::string_view title, const std::string& body) {
  return body.empty() ? "" : format("<section>\n<h2>{}</h2>\n{}</section>\n", escaped(title), body);
}

std::string paragraph(std::string_view text) { return format("<p>{}</p>\n", escaped(text)); }

std::string page(std::string_view title, const std::string& body) {
  return format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src "
      "data:\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
      escaped(title), styles, body);
}

}  // namespace trainctl::html
