// Tests limits of control groups, read from temporary folders that imitate /proc and /sys.
#include "core/base/control_groups.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <utility>

#include "core/base/memory.h"
#include "test/catch.h"

namespace trainctl::control_groups_test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t gigabyte = std::int64_t{1} << 30;

// A temporary root folder with the given files, and with 20 GiB of memory in /proc/meminfo.
struct Root {
  std::string path = (fs::temp_directory_path() / "control-groups-XXXXXX").string();

  explicit Root(std::initializer_list<std::pair<std::string, std::string>> files) {
    REQUIRE(mkdtemp(path.data()) != nullptr);
    write("/proc/meminfo", "MemTotal: 25000000 kB\nMemAvailable:   20971520 kB\nBuffers: 1 kB\n");
    for (const auto& [name, text] : files) write(name, text);
  }
  ~Root() { fs::remove_all(path); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(path + name).parent_path());
    std::ofstream(path + name) << text << '\n';
  }
  std::vector<std::string> groups(std::string_view controller) const {
    std::vector<std::string> folders;
    for (const ControlGroup& group : control_groups(controller, path)) {
      folders.push_back(group.folder.substr(path.size()));
    }
    return folders;
  }
};

const std::string gib(double count) { return std::to_string(static_cast<std::int64_t>(count * gigabyte)); }

constexpr const char* unified = "24 18 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
constexpr const char* nested = "0::/system.slice/slurmstepd.scope/job_7/step_0";
const std::string job = "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7";

TEST_CASE("the smallest limit from the process's group up to the root applies") {
  const Root root({{"/proc/self/mountinfo", unified}, {"/proc/self/cgroup", nested}});
  CHECK(root.groups("memory") == std::vector<std::string>{job + "/step_0", job,
                                                          "/sys/fs/cgroup/system.slice/slurmstepd.scope",
                                                          "/sys/fs/cgroup/system.slice", "/sys/fs/cgroup"});
  CHECK(available_memory(root.path) == 20 * gigabyte);  // no group limits it
  root.write(job + "/step_0/memory.max", "max");
  root.write(job + "/memory.max", gib(4));
  root.write(job + "/memory.high", gib(1));  // slows processes down, but ends none
  root.write(job + "/memory.current", gib(1));
  CHECK(available_memory(root.path) == 3 * gigabyte);
  root.write("/sys/fs/cgroup/system.slice/memory.max", gib(6));
  root.write("/sys/fs/cgroup/system.slice/memory.current", gib(5));
  CHECK(available_memory(root.path) == 1 * gigabyte);
  root.write("/sys/fs/cgroup/system.slice/memory.current", gib(7));
  CHECK(available_memory(root.path) == 0);
}

TEST_CASE("cached pages of files count as available memory") {
  const Root root({{"/proc/self/mountinfo", unified},
                   {"/proc/self/cgroup", nested},
                   {job + "/memory.max", gib(4)},
                   {job + "/memory.current", gib(3.5)},
                   {job + "/memory.stat", "anon 1\nactive_file " + gib(1) + "\ninactive_file " + gib(2)}});
  CHECK(available_memory(root.path) == static_cast<std::int64_t>(3.5 * gigabyte));
}

TEST_CASE("control groups of version 1 have a hierarchy for each controller") {
  const Root root({{"/proc/self/mountinfo",
                    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
                    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
                    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw"},
                   {"/proc/self/cgroup", "4:memory:/slurm/uid_0/job_7\n3:cpu,cpuacct:/slurm\n0::/x"},
                   {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"},
                   {"/sys/fs/cgroup/memory/slurm/uid_0/job_7/memory.limit_in_bytes", gib(2)},
                   {"/sys/fs/cgroup/memory/slurm/uid_0/job_7/memory.usage_in_bytes", gib(0.5)}});
  CHECK(root.groups("cpu") == std::vector<std::string>{"/sys/fs/cgroup/cpu,cpuacct/slurm", "/sys/fs/cgroup/cpu,cpuacct",
                                                       "/sys/fs/cgroup/unified/x", "/sys/fs/cgroup/unified"});
  CHECK(available_memory(root.path) == static_cast<std::int64_t>(1.5 * gigabyte));
  root.write("/sys/fs/cgroup/memory/slurm/uid_0/job_7/memory.stat",
             "cache 0\ntotal_inactive_file " + gib(0.25) + "\nhierarchical_memory_limit " + gib(1));
  CHECK(available_memory(root.path) == static_cast<std::int64_t>(0.75 * gigabyte));
}

TEST_CASE("a container finds its own group at the top, whatever its name on the host") {
  const std::string limit = "/sys/fs/cgroup/memory.max", mount = " /sys/fs/cgroup rw - cgroup2 cgroup rw";
  for (const auto& [top, group] : {std::pair("/", "0::/"),                                  // with a namespace
                                   std::pair("/kubepods/pod\\0407", "0::/kubepods/pod 7"),  // without one
                                   std::pair("/docker/abc", "0::/docker/abc/child"),        // a group of its own
                                   std::pair("/docker/abc", "0::/../other"),                // moved elsewhere
                                   std::pair("/docker/abc", "0::/docker/abcdef")}) {
    CAPTURE(top, group);
    const Root root({{"/proc/self/mountinfo", "24 18 0:22 " + std::string(top) + mount},
                     {"/proc/self/cgroup", group},
                     {limit, gib(2)},
                     {"/sys/fs/cgroup/memory.current", gib(1)}});
    CHECK(available_memory(root.path) == gigabyte);
  }
}

TEST_CASE("without control groups, or with files in another format, the machine's memory is available") {
  CHECK(available_memory(Root({}).path) == 20 * gigabyte);
  const Root root({{"/proc/self/mountinfo", "24\n - \n24 18 0:22 / /sys - cgroup2\nx - cgroup cgroup memory"},
                   {"/proc/self/cgroup", "0\n0::\n:::::\n4:memory"}});
  CHECK(available_memory(root.path) == 20 * gigabyte);
  CHECK(available_memory("/nonexistent") == std::nullopt);
}

}  // namespace
}  // namespace trainctl::control_groups_test
