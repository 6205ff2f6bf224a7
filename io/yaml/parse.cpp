// Parses YAML text to a document with yaml-cpp, which only this file uses, with limits for hostile input.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <sstream>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/format.h"
#include "core/base/utf8.h"
#include "core/spec/values.h"
#include "io/yaml/syntax_hint.h"
#include "io/yaml/yaml.h"

namespace trainctl {
namespace {

struct Refused {
  SourceLocation location;
  std::string message;  // "" if the error was already reported
};

// Builds the document from the parser's events. Maps and lists that are not complete are on a stack.
class Builder final : public YAML::EventHandler {
 public:
  Builder(std::string file, std::string base_directory, Reader& reader)
      : file_(std::move(file)), base_directory_(std::move(base_directory)), reader_(reader) {
    root_.location = {file_, 1, 1};
    root_.base_directory = base_directory_;
  }

  Node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0)
      throw Refused{location(mark), "a second document begins here; a config must be a single document"};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(make(mark, Node::Kind::null), anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    refuse_tag(mark, tag);
    if (text.find('\0') != std::string::npos) throw Refused{location(mark), "a text must not contain a NUL character"};
    Node node = make(mark, Node::Kind::scalar);
    node.text = text;
    node.quoted = tag == "!";
    add(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Refused{location(mark), "an alias inside the value that it refers to"};
    const Anchored& anchored = found->second;
    check_levels(mark, stack_.size() + anchored.extent.levels);
    count(anchored.extent.values, anchored.extent.bytes, mark);
    add(anchored.node, 0);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::sequence);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::map);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor = 0;
    bool has_key = false;
  };

  SourceLocation location(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }

  Node make(const YAML::Mark& mark, Node::Kind kind) {
    count(1, 0, mark);
    Node node;
    node.kind = kind;
    node.location = location(mark);
    node.base_directory = base_directory_;
    return node;
  }
  void count(std::size_t values, std::size_t bytes, const YAML::Mark& mark) {
    if (!reader_.take(location(mark), values, bytes)) throw Refused{};
  }
  void check_levels(const YAML::Mark& mark, std::size_t levels) const {
    if (levels > ConfigLimits::levels)
      throw Refused{location(mark), format("more than {} levels", ConfigLimits::levels)};
  }
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (tag != "?" && tag != "!" && !tag.empty())
      throw Refused{location(mark), "tags such as '" + tag + "' have no meaning here"};
  }
  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Node::Kind kind) {
    refuse_tag(mark, tag);
    check_levels(mark, stack_.size() + 1);
    stack_.push_back({make(mark, kind), anchor, false});
  }
  void close() {
    Open done = std::move(stack_.back());
    stack_.pop_back();
    merge_keys(done.node);
    add(std::move(done.node), done.anchor);
  }
  // Replaces the key `<<` of a map by the entries of its maps that the map itself does not have. Of several maps in a
  // list, earlier ones take precedence. Reports a second key `<<`, and repeated keys of the maps.
  void merge_keys(Node& map) {
    const auto is_merge = [](const Node::Entry& entry) { return entry.key == "<<"; };
    const auto first = std::stable_partition(map.entries.begin(), map.entries.end(), std::not_fn(is_merge));
    const std::vector<Node::Entry> merged(std::make_move_iterator(first), std::make_move_iterator(map.entries.end()));
    map.entries.erase(first, map.entries.end());
    if (merged.empty()) return;
    if (merged.size() > 1) {
      reader_.error(merged[1].key_location, "repeated key '<<'; to merge several maps, list them: `<<: [*A, *B]`",
                    merged[0].key_location, "first");
    }
    std::unordered_set<std::string> keys;
    for (const Node::Entry& entry : map.entries) keys.insert(entry.key);
    const Node::Entry& merge = merged[0];
    const bool is_list = merge.value.is_sequence();
    for (const Node& from : is_list ? merge.value.items : std::vector<Node>{merge.value}) {
      if (!from.is_map()) {
        throw Refused{merge.key_location, "the value of '<<' must be a map or a list of maps, not " + describe(from) +
                                              (is_list ? " in a list" : "")};
      }
      keys_are_unique(from, reader_);
      for (const Node::Entry& inherited : from.entries) {
        if (keys.insert(inherited.key).second) map.entries.push_back(inherited);
      }
    }
  }
  void add(Node node, YAML::anchor_t anchor) {
    if (anchor != 0) {
      const Extent extent = extent_of(node);
      if (!reader_.take(node.location, extent.values, extent.bytes)) throw Refused{};
      anchors_[anchor] = {node, extent};
    }
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node.is_sequence()) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      if (node.is_null()) node.text = "null";
      if (node.is_sequence() || node.is_map())
        throw Refused{node.location, "a key must be a word, not " + describe(node)};
      parent.node.entries.push_back({std::move(node.text), std::move(node.location), {}});
      parent.has_key = true;
    } else {
      // If a key has no value, the parser returns the location of the next key; it is replaced by the key's own
      // location.
      const SourceLocation& key = parent.node.entries.back().key_location;
      if (node.is_null() && node.location.line != key.line) node.location = key;
      parent.node.entries.back().value = std::move(node);
      parent.has_key = false;
    }
  }

  std::string file_;
  std::string base_directory_;
  Node root_;
  std::vector<Open> stack_;
  struct Anchored {
    Node node;
    Extent extent;
  };
  std::map<YAML::anchor_t, Anchored> anchors_;
  Reader& reader_;
  int documents_ = 0;
};

SourceLocation location_in(const std::string& text, std::size_t offset, const std::string& file) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(offset);
  const auto line = std::count(text.begin(), end, '\n');
  const std::size_t start = offset == 0 ? std::string::npos : text.rfind('\n', offset - 1);
  const std::size_t column = start == std::string::npos ? offset : offset - start - 1;
  return {file, static_cast<int>(line) + 1, static_cast<int>(column) + 1};
}

}  // namespace

Node parse_yaml(const std::string& text, const std::string& file, const std::string& base_directory, Reader& reader) {
  Node null_node;
  null_node.location = {file, 1, 1};
  if (!reader.take(null_node.location, 0, text.size())) return null_node;
  if (const auto invalid = find_invalid_utf8(text)) {
    reader.error(location_in(text, *invalid, file), format("the byte 0x{:02x} is not UTF-8; save the text as UTF-8",
                                                           static_cast<unsigned char>(text[*invalid])));
    return null_node;
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string::npos) {
    reader.error(location_in(text, nul, file), "there is a NUL byte: this is not a text in UTF-8");
    return null_node;
  }
  Builder builder(file, base_directory, reader);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.take();
  } catch (const Refused& refused) {
    if (!refused.message.empty()) reader.error(refused.location, refused.message);
  } catch (const YAML::Exception& failure) {
    reader.error({file, failure.mark.line + 1, failure.mark.column + 1},
                 "not YAML: " + failure.msg + syntax_hint(text, failure.mark.line, failure.msg));
  }
  return null_node;
}

Node parse_value(const std::string& text) {
  Reader ignored;
  return parse_yaml(text, "", "", ignored);
}

}  // namespace trainctl
