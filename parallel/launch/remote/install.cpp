// tar on this host writes, tar on each of the others reads.
#include "parallel/launch/remote/install.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/format.h"
#include "parallel/launch/remote/shell.h"
#include "parallel/launch/shell_words.h"

namespace trainctl {
namespace fs = std::filesystem;

std::vector<std::string> installation_of(const std::string& program) {
  const fs::path folder = fs::path(program).parent_path();
  std::error_code ignored;
  std::vector<std::string> paths;
  if (folder.filename() == "libexec" && fs::exists(folder / "enter", ignored)) {  // a bundle, see scripts/bundle
    for (const auto& entry : fs::directory_iterator(folder.parent_path(), ignored)) {
      if (entry.path() != folder) paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    paths.push_back(folder);
    return paths;
  }
  for (const char* module : {"trainctl_cuda.so", "trainctl_listen.so"}) {
    for (const fs::path& file : {folder / module, (folder / "../lib/trainctl" / module).lexically_normal()}) {
      if (!fs::exists(file, ignored)) continue;
      paths.push_back(file);
      break;
    }
  }
  paths.push_back(program);
  return paths;
}

std::vector<std::string> sync_hosts(const std::vector<std::string>& hosts, const HostCheck& how) {
  constexpr std::chrono::minutes most(10);
  const std::vector<std::string> without = hosts_without_program(hosts, how);
  if (without.empty()) return without;
  std::vector<std::string> archive = {"tar", "-C", "/", "-cf", "-", "--"};
  for (const std::string& path : installation_of(how.program)) archive.push_back(fs::path(path).relative_path());
  std::string problems;
  for (const RemoteAnswer& answer :
       run_on_hosts(how.agent, without, "tar -C / --no-same-owner -xf -", most, shell_line(archive))) {
    if (!answer.good()) problems += format("{}{}: {}", problems.empty() ? "" : "; ", answer.host, answer.why(most));
  }
  if (problems.empty()) return without;
  throw Error(
      ErrorKind::peer, format("trainctl could not be sent to all hosts: {}", problems),
      format("let {} be written there, or install it where it can be", fs::path(how.program).parent_path().string()));
}

}  // namespace trainctl
