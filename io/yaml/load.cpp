// A config file with what it includes.
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "core/base/format.h"
#include "core/spec/values.h"
#include "io/yaml/text.h"
#include "io/yaml/yaml.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

class Loader {
 public:
  Loader(const VariableLookup& variables, Reader& reader) : variables_(variables), reader_(reader) {}

  // `from` is where the file is named: an include's place, or the file itself.
  Node load(const fs::path& file, const std::string& shown, const Place& from,
            const std::optional<std::string>& known) {
    Node nothing;
    nothing.place = {shown, 1, 1};
    if (!reader_.take_file(from)) return nothing;
    const bool included = from.file != shown;
    const auto text = known ? known
                            : read_text(file.string(), included ? FileKind::regular : FileKind::any, from,
                                        included ? "included file '" + shown + "'" : "the config", reader_);
    if (!text) return nothing;
    Node node = parse_yaml(*text, shown, absolute(file).parent_path().string(), reader_);
    expand_variables(node, variables_, reader_);
    open_.push_back(identity(file));
    include(node, 0);
    open_.pop_back();
    return node;
  }

 private:
  static fs::path absolute(const fs::path& file) {
    std::error_code failure;
    const fs::path path = fs::absolute(file, failure);
    return failure ? file : path;
  }

  static fs::path identity(const fs::path& file) {
    std::error_code failure;
    const fs::path path = fs::weakly_canonical(file, failure);
    return failure ? absolute(file) : path;
  }

  // Merges the includes of this map, which stands `depth` levels deep in its file, and of all below it.
  void include(Node& node, std::size_t depth) {
    if (reader_.refused()) return;
    for (Node& item : node.items) include(item, depth + 1);
    for (Node::Entry& entry : node.entries) include(entry.value, depth + 1);
    auto is_include = [](const Node::Entry& entry) { return entry.key == "include" && entry.value.is_scalar(); };
    const auto found = std::find_if(node.entries.begin(), node.entries.end(), is_include);
    if (found == node.entries.end()) return;
    const Node::Entry entry = *found;
    node.entries.erase(found);
    if (reader_.reported(entry.value.place)) return;
    if (const auto second = std::find_if(node.entries.begin(), node.entries.end(), is_include);
        second != node.entries.end()) {
      reader_.error(second->key_place, "repeated key 'include'", entry.key_place, "first");
      return;
    }
    depth_ += depth;
    merge(node, entry.value);
    depth_ -= depth;
  }

  void merge(Node& node, const Node& name) {
    const fs::path file = (fs::path(name.base_directory) / name.text).lexically_normal();
    if (std::find(open_.begin(), open_.end(), identity(file)) != open_.end()) {
      reader_.error(name.place, "'" + name.text + "' includes itself");
      return;
    }
    std::error_code failure;
    const fs::path here = fs::current_path(failure);
    const fs::path shown = fs::path(name.text).is_absolute() || failure ? file : file.lexically_proximate(here);
    Node other = load(file, shown.string(), name.place, {});
    if (reader_.reported(name.place) || other.is_null()) return;
    if (!other.is_map()) {
      reader_.error(name.place, "included file '" + shown.string() + "' must hold a map, not " + describe(other));
      return;
    }
    if (depth_ + extent_of(other).levels > ConfigLimits::levels) {
      reader_.error(name.place, format("more than {} levels", ConfigLimits::levels));
      return;
    }
    merge_missing(node, std::move(other));
  }

  // Adds what the map lacks. Maps are merged key by key, unless they name different choices.
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
  std::vector<fs::path> open_;  // the files that include each other, outermost first
  std::size_t depth_ = 0;       // levels of the document above what is being included
};

}  // namespace

Node load_yaml(const std::string& file, const VariableLookup& variables, Reader& reader,
               const std::optional<std::string>& text) {
  return Loader(variables, reader).load(file, file, {file, 0, 0}, text);
}

std::string read_config_text(const std::string& file) {
  Reader reader;
  const auto text = read_text(file, FileKind::any, {file, 0, 0}, "the config", reader);
  reader.throw_if_failed();
  return *text;
}

}  // namespace trainctl
