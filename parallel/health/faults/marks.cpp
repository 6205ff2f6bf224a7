// Marks faults that have happened: a file faults/N-NAME in the run's directory for each.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "core/base/clock.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/output.h"
#include "parallel/health/faults/fault.h"

namespace trainctl {

namespace {

std::string path_of(const std::string& run_directory, std::size_t number, const Choice& fault) {
  return format("{}/faults/{}-{}", run_directory, number, fault.name);
}

}  // namespace

bool is_marked(const std::string& run_directory, std::size_t number, const Choice& fault) {
  return exists(path_of(run_directory, number, fault));
}

bool mark_fault(const std::string& run_directory, std::size_t number, const Choice& fault) {
  mkdir((run_directory + "/faults").c_str(), 0777);  // if it fails, open() reports it
  const std::string path = path_of(run_directory, number, fault);
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    if (errno != EEXIST)
      log::warning(format("{}: cannot write: {}; the fault is left out", path, std::strerror(errno)));
    return false;
  }
  const auto& options = fault.as<FaultOptions>();
  const Json mark = {{"fault", options.text()}, {"step", options.acts_after()}, {"time", wall_seconds()}};
  write_all(descriptor, mark.dump() + "\n");
  fsync(descriptor);
  close(descriptor);
  return true;
}

std::string fault_before_step(const std::string& run_directory, std::string_view name, std::int64_t step) {
  std::error_code error;  // a run without faults has no folder
  for (const auto& entry : std::filesystem::directory_iterator(run_directory + "/faults", error)) {
    if (!entry.path().filename().string().ends_with(format("-{}", name))) continue;
    std::ifstream file(entry.path());
    std::string line;
    std::getline(file, line);
    const Json mark = try_parse_json(line);
    if (mark.is_object() && mark.value("step", std::int64_t{-1}) == step - 1) return mark.value("fault", "");
  }
  return "";
}

}  // namespace trainctl
