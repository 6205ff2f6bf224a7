// Finds the control groups of this process from /proc/self/cgroup, which lists the groups, and /proc/self/mountinfo,
// which lists where the folders of the groups are mounted.
#include "core/base/control_groups.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace trainctl {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A mounted file system of control groups, in which every group is a folder.
struct Hierarchy {
  int version = 0;
  std::string top;    // path of the mounted group in the tree of all groups: "/" outside containers
  std::string mount;  // folder where the group is mounted
};

// Decodes the octal escapes, such as "\040", by which mountinfo writes spaces, tabs, line feeds and backslashes.
std::string without_escapes(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escaped = text[i] == '\\' && text.find_first_not_of("01234567", i + 1) >= std::min(i + 4, text.size());
    if (escaped && i + 3 < text.size()) {
      plain += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// The hierarchies that have the controller. A line of mountinfo is "ID PARENT DEVICE TOP MOUNT OPTIONS [TAGS...] - TYPE
// SOURCE SUPER_OPTIONS".
std::vector<Hierarchy> hierarchies(std::string_view controller, const std::string& root) {
  std::vector<Hierarchy> found;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::vector<std::string> mount = split(line.substr(0, dash), ' '), type = split(line.substr(dash + 3), ' ');
    if (mount.size() < 5 || type.size() < 3) continue;
    const bool first = type[0] == "cgroup" && contains(split(type[2], ','), controller);
    if (!first && type[0] != "cgroup2") continue;
    found.push_back({first ? 1 : 2, without_escapes(mount[3]), without_escapes(mount[4])});
  }
  return found;
}

// The path of this process's group in the tree of all groups; empty if the process is in no group of that version.
std::optional<std::string> own_group(int version, std::string_view controller, const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "ID:CONTROLLERS:PATH"; version 2 has id 0 and no controllers
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool own = version == 2 ? line.starts_with("0::") : contains(split(controllers, ','), controller);
    if (own) return line.substr(second + 1);
  }
  return {};
}

// The path of a group below the mounted group, "" for the mounted group itself. In a container without a cgroup
// namespace, the path may point outside the mounted group. Then only the mounted group is known to hold this process,
// and the result is "".
std::string path_below(const std::string& top, const std::string& group) {
  const std::string outer = top == "/" ? "" : top;
  const bool below = group.starts_with(outer + "/") && group.find("/..") == std::string::npos;
  const std::string path = below ? group.substr(outer.size()) : "";
  return path == "/" ? "" : path;
}

}  // namespace

std::vector<ControlGroup> control_groups(std::string_view controller, const std::string& root) {
  std::vector<ControlGroup> groups;
  for (const Hierarchy& hierarchy : hierarchies(controller, root)) {
    const std::optional<std::string> own = own_group(hierarchy.version, controller, root);
    if (!own) continue;
    for (std::string path = path_below(hierarchy.top, *own);; path.erase(path.rfind('/'))) {
      groups.push_back({root + hierarchy.mount + path, hierarchy.version});
      if (path.empty()) break;
    }
  }
  return groups;
}

std::optional<std::int64_t> number_in(const ControlGroup& group, const std::string& file) {
  std::ifstream stream(group.folder + "/" + file);
  std::int64_t value = 0;
  return stream >> value ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> number_of_key(const ControlGroup& group, const std::string& file, std::string_view key) {
  std::ifstream stream(group.folder + "/" + file);
  std::int64_t value = 0;
  for (std::string name; stream >> name >> value;) {
    if (name == key) return value;
  }
  return {};
}

}  // namespace trainctl
