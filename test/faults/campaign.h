// A short training run whose system calls on its run directory are disturbed, one in each trial.
#pragma once

#include <random>
#include <set>
#include <string>
#include <vector>

#include "test/support/command.h"

namespace trainctl::test {

// What a finished run leaves.
struct RunOutcome {
  std::string weights_sha256;
  std::string last, best;  // where the links lead
  std::set<std::string> checkpoints;

  bool operator==(const RunOutcome&) const = default;
};

class Campaign {
 public:
  // Trains once undisturbed. Trials lie in memory where that can be.
  Campaign();

  // The names of the calls that a run makes on its directory: those that change something, or all.
  const std::vector<std::string>& changes() const { return changes_; }
  const std::vector<std::string>& calls() const { return calls_; }
  // All calls of a run that goes on from a checkpoint, and of `inspect` of a finished run.
  const std::vector<std::string>& resume_calls() const { return resume_calls_; }
  const std::vector<std::string>& inspect_calls() const { return inspect_calls_; }

  // Kills a run in place of its k-th change, from 1, goes on, and compares. "" or what is wrong.
  std::string kill_at(std::size_t k);
  // Lets the k-th call of a run, or of a resume, fail with an errno, runs it again where it has ended, and compares.
  std::string fail_at(std::size_t k, int error);
  std::string fail_resume_at(std::size_t k, int error);
  std::string fail_inspect_at(std::size_t k, int error);

 private:
  Finished run(const std::vector<std::string>& arguments, const std::vector<std::string>& disturbance = {});
  Finished train(const std::vector<std::string>& disturbance = {});
  // A run whose k-th call fails, and another one where that ends it.
  std::string train_disturbed(const std::vector<std::string>& calls, std::size_t k, int error);
  std::string compare(const Finished& finished) const;
  std::string end_of_disturbed(const Finished& disturbed, const std::string& call);
  std::string directory() const { return folder_ / "run"; }

  Folder folder_;
  std::string config_;
  std::vector<std::string> changes_, calls_, resume_calls_, inspect_calls_;
  RunOutcome expected_;
};

// Errors that a call of this name may give, by Linux' manual pages.
std::vector<int> errors_of(const std::string& call);

// How many of `count` points a test tries, and which: all where TRAINCTL_FAULT_POINTS is "all", otherwise so many, or
// `few` where it says nothing; TRAINCTL_FAULT_SEED chooses them.
std::vector<std::size_t> chosen_points(std::size_t count, std::size_t few, std::mt19937& random);
std::mt19937 campaign_random();

}  // namespace trainctl::test
