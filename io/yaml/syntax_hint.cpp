// Finds the usual mistakes: tabs, missing colons and spaces, unclosed brackets, values that need quotes.
#include "io/yaml/syntax_hint.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/format.h"

namespace trainctl {
namespace {

// The lines of a text, without comments and without white space at their ends; blank lines are empty.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    const std::size_t first = line.find_first_not_of(" \t");
    const std::size_t comment = first != std::string::npos && line[first] == '#' ? first : line.find(" #");
    line.resize(std::min(comment, line.size()));
    line.resize(line.find_last_not_of(" \t\r") + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

bool is_indented_by_tab(const std::string& line) {
  return line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string::npos;
}

// What a line holds after its indentation and the dashes of lists.
std::string_view content_of(std::string_view line) {
  while (!line.empty() && (line.front() == ' ' || line.starts_with("- "))) line.remove_prefix(1);
  return line;
}

bool has_key(std::string_view content) {
  return content.ends_with(':') || content.find(": ") != std::string_view::npos;
}

// Characters that look like a space or a dash.
std::string odd_beginning(const std::string& line) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> odd{
      {{"\u00a0", "a no-break space instead of spaces"},
       {"\u3000", "an ideographic space instead of spaces"},
       {"\u2013", "an en dash instead of '-'"},
       {"\u2014", "an em dash instead of '-'"}}};
  const std::string_view content = content_of(line);
  for (const auto& [character, name] : odd) {
    if (content.starts_with(character)) return std::string(name);
  }
  return "";
}

// The number of lines up to the last one before `line` that is not blank; 0 if there is none.
std::size_t lines_before(const std::vector<std::string>& lines, std::size_t line) {
  while (line > 0 && lines[line - 1].empty()) --line;
  return line;
}

// Explains a line that the parser read together with the line before it, as a text of two lines.
std::string hint_on_key(const std::vector<std::string>& lines, std::size_t line) {
  const std::size_t before = lines_before(lines, line);
  if (before == 0) return "";
  const std::string_view content = content_of(lines[before - 1]);
  if (has_key(content) || content.find_first_of("[]{}\"'&*|>") != std::string_view::npos) return "";
  return content.find(':') != std::string_view::npos
             ? format("; line {} lacks the space after ':'", before)
             : format("; line {} has no ': ' between a key and its value", before);
}

std::size_t indentation(const std::string& line) { return std::min(line.find_first_not_of(' '), line.size()); }

// Explains a line whose indentation does not fit the lines before it.
std::string hint_on_indentation(const std::vector<std::string>& lines, std::size_t line) {
  const std::size_t own = indentation(lines[line]);
  const std::size_t before = lines_before(lines, line);
  if (before == 0 || lines[line].empty()) return "";
  const std::string& last = lines[before - 1];
  if (own > indentation(last)) {
    const bool has_value = content_of(last).find(": ") != std::string_view::npos;
    return has_value ? format("; line {} is indented further than line {}, which has a value", line + 1, before) : "";
  }
  for (std::size_t above = before; above-- > 0;) {
    const std::string& other = lines[above];
    if (other.empty()) continue;
    const bool is_item = std::string_view(other).substr(indentation(other)).starts_with("- ");
    const std::size_t column_of_key = other.size() - content_of(other).size();
    if (indentation(other) == own || (is_item && column_of_key == own)) return "";
    if (indentation(other) < own) break;
  }
  return format("; the indentation of line {} fits no line before it", line + 1);
}

// Explains a value in the line that YAML takes for something else.
std::string hint_on_value(std::string_view content) {
  const std::size_t colon = content.find(": ");
  if (colon == std::string_view::npos) return "";
  std::string_view value = content.substr(colon + 2);
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  if (value.empty()) return "";
  if (std::string_view("%@`").find(value.front()) != std::string_view::npos) {
    return format("; a value that begins with '{}' needs quotes", value.front());
  }
  const bool plain = std::string_view("[{\"'&*|>").find(value.front()) == std::string_view::npos;
  return plain && has_key(value) ? "; a value with ': ' in it needs quotes" : "";
}

// Whether the line has more opening than closing brackets.
bool leaves_open(std::string_view line) {
  const auto count = [&](char a, char b) {
    return std::count_if(line.begin(), line.end(), [=](char c) { return c == a || c == b; });
  };
  return count('[', '{') > count(']', '}');
}

}  // namespace

std::string syntax_hint(const std::string& text, int line, std::string_view problem) {
  const std::vector<std::string> lines = lines_of(text);
  const auto at = [&](int number) {
    return number < 0 || number >= std::ssize(lines) ? std::string() : lines[static_cast<std::size_t>(number)];
  };
  for (int near : {line, line - 1, line + 1}) {
    if (is_indented_by_tab(at(near))) return format("; line {} is indented by a tab: YAML requires spaces", near + 1);
  }
  for (int near : {line, line - 1, line + 1}) {
    if (const std::string odd = odd_beginning(at(near)); !odd.empty()) {
      return format("; line {} begins with {}", near + 1, odd);
    }
  }
  const std::string here = at(line);
  if (here.find("${") != std::string::npos) return "; inside [ ] and { } a value with ${...} needs quotes";
  if (const std::string hint = hint_on_value(content_of(here)); !hint.empty()) return hint;
  if (problem.find("flow") != std::string_view::npos) {
    for (int near : {line, line - 1}) {
      if (leaves_open(at(near))) return format("; a bracket in line {} is not closed", near + 1);
    }
  }
  if (line < 0 || line >= std::ssize(lines)) return "";
  const std::string indented = hint_on_indentation(lines, static_cast<std::size_t>(line));
  return indented.empty() ? hint_on_key(lines, static_cast<std::size_t>(line)) : indented;
}

}  // namespace trainctl
