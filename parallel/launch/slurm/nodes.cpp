// Composes srun's command lines, and SLURM's variables for a part of a job.
#include "parallel/launch/slurm/nodes.h"

#include <algorithm>
#include <numeric>

#include "core/base/format.h"
#include "core/base/shell_words.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/hosts.h"

namespace trainctl {
namespace {

// The words before the node's name; empty if srun is not installed.
std::vector<std::string> srun_words() {
  const std::string srun = find_program("srun");
  if (srun.empty()) return {};
  return {srun,      "--overlap",    "--quiet",    "--nodes=1",   "--ntasks=1",
          "--mem=0", "--unbuffered", "--mpi=none", "--export=ALL"};
}

}  // namespace

std::vector<std::string> node_shell(const std::string& node) {
  std::vector<std::string> words = srun_words();
  if (words.empty()) return words;
  words.insert(words.end(), {format("--nodelist={}", node), "sh", "-c"});
  return words;
}

std::vector<std::string> node_agent() {
  const std::vector<std::string> words = srun_words();
  if (words.empty()) return words;
  return {"/bin/sh", "-c", format(R"(exec {} --nodelist="$0" sh -c "$1")", shell_line(words))};
}

std::vector<std::string> other_nodes(const std::vector<std::string>& nodes, const Variables& variables) {
  std::vector<std::string> others = nodes;
  const bool is_there = std::erase(others, variables.text("SLURMD_NODENAME")) > 0;
  return is_there ? others : std::vector<std::string>();
}

Variables::Map variables_of(const SlurmJob& job) {
  Variables::Map variables = {{"SLURM_OVERLAP", "1"}};
  if (!job.is_part) return variables;
  std::string names, slots;
  for (const std::string& name : job.names) names += (names.empty() ? "" : ",") + name;
  for (const int count : job.slots) slots += (slots.empty() ? "" : ",") + std::to_string(count);
  const std::string nodes = std::to_string(job.nodes());
  const std::string tasks = std::to_string(std::accumulate(job.slots.begin(), job.slots.end(), 0));
  variables.merge(Variables::Map{{"SLURM_JOB_NODELIST", names},
                                 {"SLURM_NODELIST", names},
                                 {"SLURM_JOB_NUM_NODES", nodes},
                                 {"SLURM_NNODES", nodes},
                                 {"SLURM_NTASKS", tasks},
                                 {"SLURM_NPROCS", tasks},
                                 {"SLURM_TASKS_PER_NODE", slots}});
  return variables;
}

}  // namespace trainctl
