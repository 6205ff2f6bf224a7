// A short training run. In each trial one of its system calls on the run directory fails or kills it.
#pragma once

#include <random>
#include <set>
#include <string>
#include <vector>

#include "test/support/command.h"

namespace trainctl::test {

// The results of a finished run.
struct RunOutcome {
  std::string weights_sha256;
  std::string last, best;  // the targets of the links
  std::set<std::string> checkpoints;

  bool operator==(const RunOutcome&) const = default;
};

class Campaign {
 public:
  // Trains once undisturbed. The folders of the trials are in memory if possible.
  Campaign();

  // The names of the calls of a run on its directory: those that change something, or all.
  const std::vector<std::string>& changes() const { return changes_; }
  const std::vector<std::string>& calls() const { return calls_; }
  // All calls of a run that resumes from a checkpoint, and of `inspect` on a finished run.
  const std::vector<std::string>& resume_calls() const { return resume_calls_; }
  const std::vector<std::string>& inspect_calls() const { return inspect_calls_; }

  // Kills a run instead of its k-th change (from 1), resumes it and compares the results. Returns "" or what is wrong.
  std::string kill_at(std::size_t k);
  // Lets the k-th call of a run, a resume or `inspect` fail with an errno. A run that this ends is run again, and the
  // results are compared. Returns "" or what is wrong.
  std::string fail_at(std::size_t k, int error);
  std::string fail_resume_at(std::size_t k, int error);
  std::string fail_inspect_at(std::size_t k, int error);

 private:
  Finished run(const std::vector<std::string>& arguments, const std::vector<std::string>& disturbance = {});
  Finished train(const std::vector<std::string>& disturbance = {});
  // Trains with a failing k-th call, and trains again if that ended the run.
  std::string train_disturbed(const std::vector<std::string>& calls, std::size_t k, int error);
  std::string compare(const Finished& finished) const;
  std::string end_of_disturbed(const Finished& disturbed, const std::string& call);
  std::string directory() const { return folder_ / "run"; }

  Folder folder_;
  std::string config_;
  std::vector<std::string> changes_, calls_, resume_calls_, inspect_calls_;
  RunOutcome expected_;
};

// The errors that a call of this name may return, by Linux' manual pages.
std::vector<int> errors_of(const std::string& call);

// Chooses which of `count` points a test tries: all if TRAINCTL_FAULT_POINTS is "all", otherwise the number that it
// gives, or `few` if it is not set. TRAINCTL_FAULT_SEED is the seed of the choice.
std::vector<std::size_t> chosen_points(std::size_t count, std::size_t few, std::mt19937& random);
std::mt19937 campaign_random();

}  // namespace trainctl::test
