// Loads the contents of a run's directory for reports.
#pragma once

#include <string>
#include <vector>

#include "core/base/document.h"
#include "io/report/confused.h"
#include "io/report/history.h"

namespace trainctl {

struct RunReport {
  std::string directory;  // path as the user gave it
  RunHistory history;
  std::string config_text;  // config.yaml
  Node config;
  std::vector<std::string> class_names;  // empty if they are unknown
  std::vector<std::string> warnings;     // the last warnings and errors of log.txt
  Table confusion;  // confusion matrix of the best weights; if empty, the metrics' matrices are shown
  std::vector<ConfusedSample> confused;  // samples for which the best weights predict a wrong class; may be empty

  // Returns the last component of the directory: "mnist-2".
  std::string name() const;
};

// Throws Error{data} if the folder is not a run directory or its run has not begun to train, and the errors of
// load_run_config() and read_history().
RunReport load_run_report(const std::string& directory);

// Return the page of one run, and the page that compares several runs, as whole HTML documents.
std::string run_page(const RunReport& run);
std::string comparison_page(const std::vector<RunReport>& runs);

// A key whose values differ between the configs of runs, except `resolved` and `name`: its path, and its value in each
// run as one line of YAML; "" if the run's config does not have the key.
struct ConfigDifference {
  std::string key;
  std::vector<std::string> values;
};
std::vector<ConfigDifference> config_differences(const std::vector<RunReport>& runs);

// Returns the indices of runs, ordered by the best value of the first run's monitored metric. Runs that monitor
// another metric follow in their order, then runs without a best value.
std::vector<std::size_t> best_first(const std::vector<RunReport>& runs);

}  // namespace trainctl
