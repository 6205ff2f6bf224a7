// Reads the RDMA devices and their ports from /sys/class/infiniband.
#include "parallel/health/doctor/rdma.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <vector>

#include "core/base/json.h"

namespace trainctl {
namespace fs = std::filesystem;
namespace {

// Returns the names in a folder, sorted; empty if the folder cannot be read.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Returns the first line of a file; "" if it cannot be read.
std::string line_of(const fs::path& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

}  // namespace

Json rdma_info(const std::string& root) {
  const fs::path folder(root + "/sys/class/infiniband");
  Json devices = Json::array();
  for (const std::string& name : names_in(folder)) {
    std::string link;
    bool active = false;
    for (const std::string& port : names_in(folder / name / "ports")) {
      const fs::path files = folder / name / "ports" / port;
      const bool is_active = line_of(files / "state").find("ACTIVE") != std::string::npos;  // "4: ACTIVE"
      if (link.empty() || (is_active && !active)) link = line_of(files / "link_layer");
      active = active || is_active;
    }
    devices.push_back({{"name", name}, {"link", link}, {"active", active}});
  }
  constexpr std::array modules = {"/sys/module/nvidia_peermem", "/sys/module/nv_peer_mem"};
  const bool loaded = std::any_of(modules.begin(), modules.end(), [&root](const char* module) {
    std::error_code ignored;
    return fs::exists(root + module, ignored);
  });
  return {{"devices", std::move(devices)}, {"peer_memory", loaded}};
}

}  // namespace trainctl
