// Loads a config file and merges the files that it includes.
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "core/base/format.h"
#include "core/layers/model/included.h"
#include "core/spec/values.h"
#include "io/yaml/text.h"
#include "io/yaml/yaml.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

class Loader {
 public:
  Loader(const VariableLookup& variables, Reader& reader, ConfigFiles& files)
      : variables_(variables), reader_(reader), files_(files) {}

  // Loads a file. `from` is the location of the include that names the file, or the file itself.
  Node load(const std::string& file, const std::string& shown, const SourceLocation& from) {
    Node null_node;
    null_node.location = {shown, 1, 1};
    if (!reader_.take_file(from)) return null_node;
    const std::string path = files_.absolute(file);
    const std::string* text = text_of(file, path, shown, from);
    if (text == nullptr) return null_node;
    Node node = parse_yaml(*text, shown, fs::path(path).parent_path().string(), reader_);
    expand_variables(node, variables_, reader_, files_.directory());
    open_.push_back(identity(path));
    include(node, "", 0);
    open_.pop_back();
    return node;
  }

 private:
  // Returns the text of a file; reports an error and returns null if it cannot be read.
  const std::string* text_of(const std::string& file, const std::string& path, const std::string& shown,
                             const SourceLocation& from) {
    if (const std::string* known = files_.find(path)) return known;
    const bool included = from.file != shown;
    auto text = read_text(file, included ? FileKind::regular : FileKind::any, from,
                          included ? "included file '" + shown + "'" : "the config", reader_);
    if (!text) return nullptr;
    files_.add(path, std::move(*text));
    return files_.find(path);
  }

  // Returns the canonical path, which is the same for all names of a file.
  static fs::path identity(const fs::path& path) {
    std::error_code failure;
    const fs::path canonical = fs::weakly_canonical(path, failure);
    return failure ? path : canonical;
  }

  // Merges the includes of this node and of all nodes below it. The node is the value of `key`; `depth` is its depth in
  // its file.
  void include(Node& node, const std::string& key, std::size_t depth) {
    if (reader_.refused()) return;
    for (Node& item : node.items) include(item, "", depth + 1);
    for (Node::Entry& entry : node.entries) include(entry.value, entry.key, depth + 1);
    auto is_include = [](const Node::Entry& entry) { return entry.key == "include" && entry.value.is_scalar(); };
    const auto found = std::find_if(node.entries.begin(), node.entries.end(), is_include);
    if (found == node.entries.end()) return;
    const Node::Entry entry = *found;
    node.entries.erase(found);
    if (reader_.reported(entry.value.location)) return;
    if (const auto second = std::find_if(node.entries.begin(), node.entries.end(), is_include);
        second != node.entries.end()) {
      reader_.error(second->key_location, "repeated key 'include'", entry.key_location, "first");
      return;
    }
    depth_ += depth;
    if (!merge(node, entry.value, key)) mark_incomplete(node, reader_.diagnostics().back().location);
    depth_ -= depth;
  }

  // Makes the error of a missing file that of the map and of the maps in it, with which the file would be merged:
  // errors that follow from their missing keys are not reported then.
  static void mark_incomplete(Node& map, const SourceLocation& error) {
    map.location = error;
    for (Node::Entry& entry : map.entries) {
      if (entry.value.is_map()) mark_incomplete(entry.value, error);
    }
  }

  // Merges an included file into the node. If a whole config is included under a key, only its section of that key is
  // used. Returns false after reporting that a file cannot be read or is no map.
  bool merge(Node& node, const Node& name, const std::string& key) {
    const fs::path file = (fs::path(name.base_directory) / name.text).lexically_normal();
    if (std::find(open_.begin(), open_.end(), identity(file)) != open_.end()) {
      reader_.error(name.location, "'" + name.text + "' includes itself");
      return false;
    }
    const fs::path shown = fs::path(name.text).is_absolute() ? file : file.lexically_proximate(files_.directory());
    const std::size_t before = reader_.diagnostics().size();
    Node other = load(file.string(), shown.string(), name.location);
    const bool is_new_error = reader_.diagnostics().size() > before;
    if (reader_.reported(name.location) || other.is_null()) return !is_new_error;
    if (!other.is_map()) {
      reader_.error(name.location, "included file '" + shown.string() + "' must hold a map, not " + describe(other));
      return false;
    }
    const bool is_whole = !is_new_error || !reader_.reported(other.location);
    if (depth_ + extent_of(other).levels > ConfigLimits::levels) {
      reader_.error(name.location, format("more than {} levels", ConfigLimits::levels));
      return false;
    }
    if (const Node* section = key.empty() ? nullptr : other.find(key); section != nullptr && section->is_map()) {
      other = Node(*section);
    }
    if (key == "model") {
      replace_layers(node, other, reader_);
      continue_network(node, other, reader_);
    }
    merge_missing(node, std::move(other));
    return is_whole;
  }

  // Adds the keys that are missing in the map. Maps are merged key by key, unless they name different choices.
  void merge_missing(Node& map, Node other) {
    keys_are_unique(other, reader_);
    std::unordered_map<std::string, std::size_t> own;
    for (std::size_t i = 0; i < map.entries.size(); ++i) own.try_emplace(map.entries[i].key, i);
    for (Node::Entry& entry : other.entries) {
      const auto [found, is_new] = own.try_emplace(entry.key, map.entries.size());
      if (is_new) {
        map.entries.push_back(std::move(entry));
        continue;
      }
      Node& value = map.entries[found->second].value;
      if (!value.is_map() || !entry.value.is_map()) continue;
      const Node* own_name = value.find("name");
      const Node* other_name = entry.value.find("name");
      if (own_name && other_name && own_name->text != other_name->text) continue;
      merge_missing(value, std::move(entry.value));
    }
  }

  const VariableLookup& variables_;
  Reader& reader_;
  ConfigFiles& files_;
  std::vector<fs::path> open_;  // files that are being loaded: each includes the next
  std::size_t depth_ = 0;       // levels of the document above the included file
};

}  // namespace

Node load_yaml(const std::string& file, const VariableLookup& variables, Reader& reader, ConfigFiles& files) {
  return Loader(variables, reader, files).load(file, file, {file, 0, 0});
}

Node load_yaml(const std::string& file, const VariableLookup& variables, Reader& reader) {
  ConfigFiles files;
  return load_yaml(file, variables, reader, files);
}

}  // namespace trainctl
