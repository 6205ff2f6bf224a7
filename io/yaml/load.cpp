// A config file with what it includes.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "core/base/format.h"
#include "io/yaml/yaml.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;
constexpr std::uintmax_t max_bytes = 16'000'000;

class Loader {
 public:
  Loader(const VariableLookup& variables, Reader& reader) : variables_(variables), reader_(reader) {}

  // `from` is where the file is named: an include's place, or the file itself.
  Node load(const fs::path& file, const std::string& shown, const Place& from) {
    Node nothing;
    nothing.place = {shown, 1, 1};
    const auto text = read(file, shown, from);
    if (!text) return nothing;
    Node node = parse_yaml(*text, shown, fs::absolute(file).parent_path().string(), reader_);
    expand_variables(node, variables_, reader_);
    open_.push_back(identity(file));
    include(node);
    open_.pop_back();
    return node;
  }

 private:
  static fs::path identity(const fs::path& file) {
    std::error_code failure;
    const fs::path path = fs::weakly_canonical(file, failure);
    return failure ? fs::absolute(file) : path;
  }

  std::optional<std::string> read(const fs::path& file, const std::string& shown, const Place& from) {
    const std::string what = from.file == shown ? "the config" : "included file '" + shown + "'";
    std::error_code failure;
    if (fs::is_directory(file, failure)) {
      reader_.error(from, what + " is a folder");
      return {};
    }
    std::ifstream stream(file, std::ios::binary);
    if (!stream) {
      reader_.error(from, what + " cannot be read: " + std::strerror(errno));
      return {};
    }
    // Counted while it is read: a device or a pipe has no size of its own.
    std::string text(max_bytes + 1, '\0');
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(stream.gcount()));
    if (text.size() > max_bytes) {
      reader_.error(from, format("{} is larger than {} MB", what, max_bytes / 1'000'000));
      return {};
    }
    return text;
  }

  // Merges the includes of this map and of all below it.
  void include(Node& node) {
    for (Node& item : node.items) include(item);
    for (Node::Entry& entry : node.entries) include(entry.value);
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
    merge(node, entry.value);
  }

  void merge(Node& node, const Node& name) {
    const fs::path file = (fs::path(name.base_directory) / name.text).lexically_normal();
    if (std::find(open_.begin(), open_.end(), identity(file)) != open_.end()) {
      reader_.error(name.place, "'" + name.text + "' includes itself");
      return;
    }
    if (++includes_ > 1000) {
      if (includes_ == 1001) reader_.error(name.place, "more than 1000 includes");
      return;
    }
    const fs::path shown = fs::path(name.text).is_absolute() ? file : file.lexically_proximate(fs::current_path());
    Node other = load(file, shown.string(), name.place);
    if (reader_.reported(name.place) || other.is_null()) return;
    if (!other.is_map()) {
      reader_.error(name.place, "included file '" + shown.string() + "' must hold a map, not " + describe(other));
      return;
    }
    merge_missing(node, std::move(other));
  }

  // Adds what the map lacks. Maps are merged key by key, unless they name different choices.
  static void merge_missing(Node& map, Node other) {
    for (Node::Entry& entry : other.entries) {
      const auto own = std::find_if(map.entries.begin(), map.entries.end(),
                                    [&](const Node::Entry& candidate) { return candidate.key == entry.key; });
      if (own == map.entries.end()) {
        map.entries.push_back(std::move(entry));
        continue;
      }
      if (!own->value.is_map() || !entry.value.is_map()) continue;
      const Node* own_name = own->value.find("name");
      const Node* other_name = entry.value.find("name");
      if (own_name && other_name && own_name->text != other_name->text) continue;
      merge_missing(own->value, std::move(entry.value));
    }
  }

  const VariableLookup& variables_;
  Reader& reader_;
  std::vector<fs::path> open_;  // the files that include each other, outermost first
  int includes_ = 0;
};

}  // namespace

Node load_yaml(const std::string& file, const VariableLookup& variables, Reader& reader) {
  return Loader(variables, reader).load(file, file, {file, 0, 0});
}

}  // namespace trainctl
