// YAML text to a document (the home of yaml-cpp), with bounds against hostile input.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "core/base/format.h"
#include "io/yaml/yaml.h"

namespace trainctl {
namespace {

constexpr std::size_t max_depth = 100;
constexpr std::size_t max_values = 200'000;

struct Refused {
  Place place;
  std::string message;
};

std::size_t count_values(const Node& node) {
  std::size_t count = 1;
  for (const Node& item : node.items) count += count_values(item);
  for (const Node::Entry& entry : node.entries) count += count_values(entry.value);
  return count;
}

// Builds the tree from the parser's events: maps and lists that are open lie on a stack.
class Builder final : public YAML::EventHandler {
 public:
  Builder(std::string file, std::string base_directory)
      : file_(std::move(file)), base_directory_(std::move(base_directory)) {
    root_.place = {file_, 1, 1};
    root_.base_directory = base_directory_;
  }

  Node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) throw Refused{place(mark), "a second document begins here; a config is one document"};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(make(mark, Node::Kind::null), anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    refuse_tag(mark, tag);
    Node node = make(mark, Node::Kind::scalar);
    node.text = text;
    node.quoted = tag == "!";
    add(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Refused{place(mark), "an alias inside of what it stands for"};
    count(count_values(found->second), mark);
    add(found->second, 0);
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

  Place place(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }

  Node make(const YAML::Mark& mark, Node::Kind kind) {
    count(1, mark);
    Node node;
    node.kind = kind;
    node.place = place(mark);
    node.base_directory = base_directory_;
    return node;
  }
  void count(std::size_t values, const YAML::Mark& mark) {
    values_ += values;
    if (values_ > max_values) throw Refused{place(mark), format("more than {} values", max_values)};
  }
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (tag != "?" && tag != "!" && !tag.empty())
      throw Refused{place(mark), "tags such as '" + tag + "' have no meaning here"};
  }
  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Node::Kind kind) {
    refuse_tag(mark, tag);
    if (stack_.size() >= max_depth) throw Refused{place(mark), format("more than {} levels", max_depth)};
    stack_.push_back({make(mark, kind), anchor, false});
  }
  void close() {
    Open done = std::move(stack_.back());
    stack_.pop_back();
    add(std::move(done.node), done.anchor);
  }
  void add(Node node, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_[anchor] = node;
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node.is_sequence()) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      if (node.is_null()) node.text = "null";
      if (node.is_sequence() || node.is_map()) throw Refused{node.place, "a key must be a word, not " + describe(node)};
      parent.node.entries.push_back({std::move(node.text), std::move(node.place), {}});
      parent.has_key = true;
    } else {
      // Where nothing stands after a key, the parser's place is that of what comes next.
      const Place& key = parent.node.entries.back().key_place;
      if (node.is_null() && node.place.line != key.line) node.place = key;
      parent.node.entries.back().value = std::move(node);
      parent.has_key = false;
    }
  }

  std::string file_;
  std::string base_directory_;
  Node root_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Node> anchors_;
  std::size_t values_ = 0;
  int documents_ = 0;
};

// Whether the line, counted from 0, holds a variable: the usual reason why braces do not match.
bool has_variable(const std::string& text, int line) {
  std::istringstream lines(text);
  std::string current;
  for (int i = 0; i <= line && std::getline(lines, current); ++i) {
  }
  return current.find("${") != std::string::npos;
}

}  // namespace

Node parse_yaml(const std::string& text, const std::string& file, const std::string& base_directory, Reader& reader) {
  Builder builder(file, base_directory);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.take();
  } catch (const Refused& refused) {
    reader.error(refused.place, refused.message);
  } catch (const YAML::Exception& failure) {
    const bool hint = has_variable(text, failure.mark.line);
    reader.error({file, failure.mark.line + 1, failure.mark.column + 1},
                 "not YAML: " + failure.msg + (hint ? "; inside [ ] and { } a value with ${...} needs quotes" : ""));
  }
  Node nothing;
  nothing.place = {file, 1, 1};
  return nothing;
}

}  // namespace trainctl
