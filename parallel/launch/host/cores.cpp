// Finds cores in Linux's files, and distributes them over ranks.
#include "parallel/launch/host/cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

#include "core/base/control_groups.h"

namespace trainctl {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Parses a list: "0-3,8" is 0, 1, 2, 3, 8.
std::vector<int> parse_list(const std::string& text) {
  std::vector<int> numbers;
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    std::istringstream range(item);
    int first = 0;
    char dash = 0;
    if (!(range >> first)) continue;
    int last = first;
    if (range >> dash) range >> last;
    for (int number = first; number <= last; ++number) numbers.push_back(number);
  }
  return numbers;
}

Core siblings_of(int processor) {
  const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/";
  return parse_list(first_line(folder + "thread_siblings_list"));
}

std::vector<int> allowed_processors() {
  std::vector<int> processors;
  for (int limit = 1024; limit <= (1 << 20); limit *= 4) {  // the kernel rejects a set that is too small for the host
    cpu_set_t* set = CPU_ALLOC(limit);
    const std::size_t bytes = CPU_ALLOC_SIZE(limit);
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    for (int processor = 0; known && processor < limit; ++processor) {
      if (CPU_ISSET_S(processor, bytes, set)) processors.push_back(processor);
    }
    CPU_FREE(set);
    if (known) break;
  }
  return processors;
}

void bind_to(const std::vector<int>& processors) {
  const int limit = *std::max_element(processors.begin(), processors.end()) + 1;
  cpu_set_t* set = CPU_ALLOC(limit);
  const std::size_t bytes = CPU_ALLOC_SIZE(limit);
  CPU_ZERO_S(bytes, set);
  for (int processor : processors) CPU_SET_S(processor, bytes, set);
  sched_setaffinity(0, bytes, set);  // if this is forbidden, the rank runs unbound
  CPU_FREE(set);
}

// Returns the CPU time limit of this process's control groups, in processors; infinity: no limit.
double quota() {
  double least = std::numeric_limits<double>::infinity();
  for (const ControlGroup& group : control_groups("cpu")) {
    std::istringstream limit(group.version == 2 ? first_line(group.folder + "/cpu.max")
                                                : first_line(group.folder + "/cpu.cfs_quota_us") + " " +
                                                      first_line(group.folder + "/cpu.cfs_period_us"));
    double granted = 0, period = 0;
    if (limit >> granted >> period && granted > 0 && period > 0) least = std::min(least, granted / period);
  }
  return least;
}

// Binds the process to its share and returns the number of threads for computation.
int apply(const CoreShare& share, const Variables& variables) {
  if (!share.processors.empty()) bind_to(share.processors);
  const std::optional<int> requested = variables.number("OMP_NUM_THREADS");
  return requested && *requested > 0 ? *requested : share.threads;
}

}  // namespace

std::vector<Core> group_cores(const std::vector<int>& processors, const std::function<Core(int)>& siblings) {
  std::vector<Core> cores;
  for (int processor : processors) {
    const Core together = siblings(processor);
    const auto known = std::find_if(cores.begin(), cores.end(), [&](const Core& core) {
      return std::find(together.begin(), together.end(), core.front()) != together.end();
    });
    if (known != cores.end()) {
      known->push_back(processor);
    } else {
      cores.push_back({processor});
    }
  }
  return cores;
}

Cores find_cores(const Variables& variables) {
  Cores cores;
  std::vector<int> processors = allowed_processors();
  if (processors.empty()) processors.push_back(0);
  cores.allowed = group_cores(processors, siblings_of);
  const auto all = static_cast<double>(cores.allowed.size());
  const double per_core = static_cast<double>(processors.size()) / all;
  double granted = std::min(all, quota());
  if (variables.has("SLURM_JOB_ID")) {  // SLURM counts hardware threads, and allocates whole cores
    granted = std::min(granted, variables.number("SLURM_CPUS_ON_NODE").value_or(1 << 20) / per_core);
  }
  cores.usable = std::max(1, static_cast<int>(granted));
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  cores.online = std::max(static_cast<int>(static_cast<double>(online) / per_core), cores.usable);
  return cores;
}

CoreShare core_share_of(const Cores& cores, const Situation& situation) {
  const int ranks = std::max(1, situation.local_ranks);
  if (situation.bound) return {std::min(cores.usable, std::max(1, cores.online / ranks)), {}};
  CoreShare share{std::max(1, cores.usable / ranks), {}};
  const auto all = static_cast<int>(cores.allowed.size());
  // If the limit on CPU time is less than the number of cores, other processes use the cores, too; the kernel then
  // finds free cores.
  if (!situation.supervised || ranks == 1 || ranks > cores.usable || cores.usable < all) return share;
  const int first = situation.local_rank * all / ranks;
  for (int core = first; core < first + share.threads; ++core) {
    const Core& threads = cores.allowed[static_cast<std::size_t>(core)];
    share.processors.insert(share.processors.end(), threads.begin(), threads.end());
  }
  return share;
}

int numa_node_of(const std::string& pci_bus_id) {
  const std::string node = first_line("/sys/bus/pci/devices/" + pci_bus_id + "/numa_node");
  const std::vector<int> numbers = parse_list(node);
  return numbers.empty() ? -1 : numbers.front();
}

std::vector<int> processors_near(const std::string& pci_bus_id) {
  return parse_list(first_line("/sys/bus/pci/devices/" + pci_bus_id + "/local_cpulist"));
}

CoreShare core_share_near(const Cores& cores, const Situation& situation, const std::vector<int>& near, int index,
                          int count) {
  CoreShare share = core_share_of(cores, situation);
  const bool others_decide = situation.bound || (situation.is_rank() && !situation.supervised);
  if (others_decide || cores.usable < static_cast<int>(cores.allowed.size())) return share;
  std::vector<Core> close;
  for (const Core& core : cores.allowed) {
    if (std::find(near.begin(), near.end(), core.front()) != near.end()) close.push_back(core);
  }
  const auto all = static_cast<int>(close.size());
  if (all < count) return share;
  share = {all / count, {}};
  for (int core = index * all / count; core < index * all / count + share.threads; ++core) {
    const Core& threads = close[static_cast<std::size_t>(core)];
    share.processors.insert(share.processors.end(), threads.begin(), threads.end());
  }
  return share;
}

int take_share(const Situation& situation, const Variables& variables) {
  return apply(core_share_of(find_cores(variables), situation), variables);
}

int apply_share_near(const Cores& cores, const Situation& situation, const Variables& variables,
                     const std::string& pci_bus_id, int index, int count) {
  return apply(core_share_near(cores, situation, processors_near(pci_bus_id), index, count), variables);
}

}  // namespace trainctl
