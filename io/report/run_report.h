// A run as reports show it: what its directory holds.
#pragma once

#include <string>
#include <vector>

#include "core/base/document.h"
#include "io/report/confused.h"
#include "io/report/history.h"

namespace trainctl {

struct RunReport {
  std::string directory;  // as it was named
  RunHistory history;
  std::string config_text;  // config.yaml
  Node config;
  std::vector<std::string> class_names;  // empty: not known
  std::vector<std::string> warnings;     // the last ones of log.txt, and errors
  Table confusion;                       // of the validation data by the best weights; empty: that of the metrics
  std::vector<ConfusedSample> confused;  // what those weights take for another class; may be empty

  // The directory's last name: "mnist-2".
  std::string name() const;
};

// Throws Error{data} where the folder is no run directory or holds a run that has not begun to train, and what
// load_run_config() and read_history() find wrong with its files.
RunReport load_run_report(const std::string& directory);

// The page of one run, and the page that compares several, as whole HTML documents.
std::string run_page(const RunReport& run);
std::string comparison_page(const std::vector<RunReport>& runs);

// Where two or more runs' configs differ, but for what a run found out itself: the key's path, and its value in each
// run, as one line of YAML; "" where it has none.
struct ConfigDifference {
  std::string key;
  std::vector<std::string> values;
};
std::vector<ConfigDifference> config_differences(const std::vector<RunReport>& runs);

// Numbers of runs, the best value of their monitored metric first; those without one are last. Runs that monitor
// another metric than the first run keep their order behind those that monitor the same.
std::vector<std::size_t> best_first(const std::vector<RunReport>& runs);

}  // namespace trainctl
