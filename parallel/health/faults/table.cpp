// The table of faults, and what all of them share.
#include "parallel/health/faults/table.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/base/table.h"
#include "parallel/health/faults/fault.h"

namespace trainctl {

const ChoiceTable& fault_choices() {
  static const ChoiceTable table{
      "fault",
      {kill_section(), hang_section(), slow_section(), nan_section(), corrupt_section(), torn_checkpoint_section(),
       full_disk_section(), cut_link_section(), lose_host_section()}};
  return table;
}

bool FaultScene::acts_for(const std::string& host) const {
  return std::find(hosts().begin(), hosts().end(), host) - hosts().begin() == rank();
}

std::string rehearsal_warning(const FaultList& faults, const std::string& run_directory, std::int64_t step) {
  std::string list;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const auto& options = faults[i].as<FaultOptions>();
    if (options.acts_after() <= step || is_marked(run_directory, i + 1, faults[i])) continue;
    list += format("{}{} after {}", list.empty() ? "" : "; ", options.text(), counted(options.step, "step"));
  }
  return list.empty() ? "" : format("this run rehearses faults, each of them once: {}", list);
}

std::string why_too_late(const FaultOptions& fault, std::int64_t steps) {
  if (steps == 0 || fault.acts_after() <= steps) return "";
  return format("the fault would happen after {}, and the run ends after {}: choose an earlier step, or train longer",
                counted(fault.acts_after(), "step"), steps);
}

std::string why_no_rank(const FaultOptions& fault, int ranks) {
  const std::optional<int> rank = fault.named_rank();
  if (!rank || *rank < ranks) return "";
  return format("there is no rank {} among {}: name {}, or train on more ranks", *rank, counted(ranks, "rank"),
                ranks == 1 ? "rank 0" : format("one of 0 to {}", ranks - 1));
}

std::string why_no_host(const std::string& host, const FaultScene& scene) {
  const std::vector<std::string>& hosts = scene.hosts();
  if (host == hosts.front()) {
    return format("rank 0 and the command itself run on {}, and the run ends with them: name another host", host);
  }
  if (std::find(hosts.begin(), hosts.end(), host) != hosts.end()) return "";
  std::vector<std::string> names = hosts;
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.size() == 1) return format("no rank runs on a host '{}': all ranks run on {}", host, names.front());
  return format("no rank runs on a host '{}': name {}", host, join_or({names.begin() + 1, names.end()}));
}

}  // namespace trainctl
