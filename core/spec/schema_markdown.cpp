// Writes the Markdown reference of config keys from their declarations.
#include "core/spec/schema.h"

#include <algorithm>
#include <vector>

#include "core/base/format.h"
#include "core/spec/values.h"

namespace trainctl {
namespace {

using Kind = TypeInfo::Kind;

constexpr const char* introduction = R"(# Config reference

<!-- Written by `trainctl schema --markdown`; a test keeps it current. -->

A config is one YAML file. How its values are written:

- **A choice** is a bare name or a map with `name`: `optimizer: adam`, `optimizer: {name: adam, learning_rate: 1e-3}`.
- **A list of choices** holds one-key maps, `- dense: {units: 10}`, or bare names: `- flatten`.
- **Numbers** may be fractions: `1/255`.
- **Durations** are `10 steps`, `1 epoch` or `30 s`; a bare number counts steps. **Times** are `30 s`, `5 min` or `2 h`; a bare
  number is in seconds. **Sizes** are `25 MB` (decimal) or `16 MiB`; a bare number is in bytes.
- **Relative paths** are relative to the folder of the config file that contains them. Paths that begin with a variable or are
  set by `--set` are relative to the working directory.
- `${VAR}` and `${VAR:-default}` are replaced in values by environment variables; a literal `${` is written `$${`. Inside `[ ]`
  and `{ }` such values need quotes.
- `include: FILE` in a map adds the keys of that file's map; keys of the including map take precedence.
- Anchors and aliases (`&NAME`, `*NAME`) repeat a value; `<<: *NAME` adds those keys of the map NAME that this map lacks.
- `--set train.epochs=5` on the command line replaces a value; items of lists are counted from 0: `model.layers.0.dense.units=5`.

)";

std::string code(const std::string& text) { return "`" + text + "`"; }

std::vector<std::string> codes(std::vector<std::string> texts) {
  for (std::string& text : texts) text = code(text);
  return texts;
}

std::string limits(const Range& range) {
  std::vector<std::string> parts;
  if (range.at_least) parts.push_back(format("≥ {}", *range.at_least));
  if (range.more_than) parts.push_back(format("> {}", *range.more_than));
  if (range.at_most) parts.push_back(format("≤ {}", *range.at_most));
  if (range.less_than) parts.push_back(format("< {}", *range.less_than));
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? " " : ", ") + part;
  return text;
}

// The anchor of a heading on GitHub.
std::string anchor(const std::string& heading) {
  std::string text;
  for (char c : heading) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-') {
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (c == ' ') {
      text += '-';
    }
  }
  return text;
}

std::string link(const std::string& text, const std::string& heading) {
  return "[" + text + "](#" + anchor(heading) + ")";
}

std::string with_article(const std::string& noun) {
  return (std::string_view("aeiou").find(noun.front()) != std::string_view::npos ? "an " : "a ") + noun;
}

class MarkdownWriter {
 public:
  std::string write(const Section& root) {
    out_ = introduction;
    out_ += "## Top level\n\n";
    table(root, "");
    // Writing a table of keys appends the sections and choice tables that it refers to, each once. Sections are written
    // first. Each choice table may refer to further sections, which are written after it.
    std::size_t next = 0;
    write_sections(next);
    for (std::size_t choice = 0; choice < tables_.size(); ++choice) {
      choices(*tables_[choice]);
      write_sections(next);
    }
    return out_;
  }

 private:
  void write_sections(std::size_t& next) {
    for (; next < sections_.size(); ++next) {
      const auto [section, path] = sections_[next];
      out_ += "## " + path + "\n\n" + section->meaning + "\n\n";
      table(*section, path);
    }
  }

  void choices(const ChoiceTable& table_of) {
    out_ += "## Choices: " + table_of.what + "\n\n";
    for (const Section& choice : table_of.choices) {
      out_ += "### " + table_of.what + " " + choice.name + "\n\n" + choice.meaning;
      if (!choice.shorthand.empty()) {
        out_ += " A value instead of the map sets " + code(choice.shorthand) + ".";
      }
      if (!choice.aliases.empty()) out_ += " Also written " + join_or(codes(choice.aliases)) + ".";
      out_ += "\n\n";
      if (!choice.keys.empty()) table(choice, table_of.what + " " + choice.name);
    }
  }

  void table(const Section& section, const std::string& path) {
    out_ += "| key | value | default | meaning |\n| --- | --- | --- | --- |\n";
    for (const Key& key : section.keys) {
      const std::string key_path = path.empty() ? key.name : path + "." + key.name;
      const std::string fallback = key.required ? "required" : key.default_text.empty() ? "" : code(key.default_text);
      out_ += "| " + (key.rest ? key.name : code(key.name)) + " | " + type(key.type, key.type.range, key_path) + " | " +
              fallback + " | " + key.meaning;
      if (key.flatten) out_ += " The options of the choice are keys next to this one.";
      out_ += " |\n";
    }
    out_ += "\n";
  }

  std::string type(const TypeInfo& info, const Range& range, const std::string& path) {
    std::vector<std::string> parts;
    for (const std::string& word : info.names) parts.push_back(code(word));
    if (const std::string text = kind(info, range, path); !text.empty()) parts.push_back(text);
    std::stable_partition(parts.begin(), parts.end(),
                          [](const std::string& part) { return part != "`none`" && part != "`auto`"; });
    return join_or(parts) + (info.by_name ? ", or a map from names to such values" : "");
  }

  std::string kind(const TypeInfo& info, const Range& range, const std::string& path) {
    switch (info.kind) {
      case Kind::boolean:
        return "`true`, `false`";
      case Kind::integer:
        return "whole number" + limits(range);
      case Kind::number:
        return "number" + limits(range);
      case Kind::string:
        return "string";
      case Kind::path:
        return "path";
      case Kind::duration:
        return "duration";
      case Kind::time:
        return "time";
      case Kind::size:
        return "size";
      case Kind::enumeration:
        return "";
      case Kind::list: {
        const std::string item = type(*info.item, range, path);
        const std::string list = info.length ? format("list of {}: {}", info.length, item) : "list: " + item;
        return info.single_item_allowed ? item + ", or " + list : list;
      }
      case Kind::map:
        return "map from names to: " + type(*info.item, range, path);
      case Kind::section:
        return link("map", section(info.section(), path));
      case Kind::choice:
        return link(with_article(info.table().what), choice(info.table()));
      case Kind::choices:
        return "list: " + link(with_article(info.table().what), choice(info.table()));
      case Kind::any:
        return "any value";
    }
    return "";
  }

  // Adds a section to the list of sections to write, unless it is there already; returns its heading.
  std::string section(const Section& section, const std::string& path) {
    for (const auto& [known, heading] : sections_) {
      if (known == &section) return heading;
    }
    sections_.emplace_back(&section, path);
    return path;
  }
  std::string choice(const ChoiceTable& table_of) {
    bool known = false;
    for (const ChoiceTable* other : tables_) known |= other == &table_of;
    if (!known) tables_.push_back(&table_of);
    return "Choices: " + table_of.what;
  }

  std::string out_;
  std::vector<std::pair<const Section*, std::string>> sections_;
  std::vector<const ChoiceTable*> tables_;
};

}  // namespace

std::string markdown_reference(const Section& root) {
  std::string text = MarkdownWriter().write(root);
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

}  // namespace trainctl
