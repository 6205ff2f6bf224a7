// Exchanges messages with the agents of all hosts, and decides whether ranks hang.
#include "parallel/launch/watch/host_watch.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/flight_record.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/shell_words.h"
#include "parallel/launch/hosts.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/watch/agent_process.h"
#include "parallel/launch/watch/hang_report.h"
#include "parallel/launch/watch/hang_rule.h"
#include "parallel/launch/watch/lease_renewal.h"
#include "parallel/launch/watch/reach.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

constexpr double time_for_places = 3, time_between_questions = 3, time_for_files = 5, time_to_end = 2;  // seconds

// Returns the lease of agents on other hosts. An agent on this host ends with this process and needs no lease.
std::chrono::milliseconds lease_of(const LaunchPlan& plan, const HostWatchOptions& options) {
  constexpr std::chrono::milliseconds least(10'000), most(30'000);
  if (options.lease) return *options.lease;
  return plan.timeout.count() > 0 ? std::clamp(plan.timeout, least, most) : most;
}

// Returns a random word that no login script prints by chance.
std::string random_mark() {
  std::random_device random;
  return format("trainctl-{:08x}{:08x}", random(), random());
}

std::vector<std::string> agent_command(const ReachableHost& host, std::vector<std::string> agent,
                                       const std::string& folder, const std::string& mark,
                                       std::chrono::milliseconds lease) {
  const bool is_here = host.shell.empty();
  agent.insert(agent.end(), {"--folder", folder, "--mark", mark, "--host", without_user(host.name), "--lease",
                             std::to_string(is_here ? 0 : lease.count())});
  if (is_here) return agent;
  const std::string libraries = Variables::of_process().text("LD_LIBRARY_PATH");
  const std::string script =
      (libraries.empty() ? "" : format("LD_LIBRARY_PATH={} ", shell_word(libraries))) + "exec " + shell_line(agent);
  std::vector<std::string> words = host.shell;
  const bool has_shell = words.back() == "-c";
  words.push_back(has_shell ? script : "sh -c " + shell_word(script));
  return words;
}

// Copies a file under a temporary name, so that the copy is whole or absent.
void copy_whole(const fs::path& from, const fs::path& to) {
  std::error_code error;
  const fs::path temporary = to.string() + ".new";
  fs::copy_file(from, temporary, fs::copy_options::overwrite_existing, error);
  if (!error) fs::rename(temporary, to, error);
  if (error) log::debug(format("{} was not copied: {}", from.string(), error.message()));
}

bool is_record(const fs::path& path) { return path.filename().string().starts_with("rank-"); }

}  // namespace

class HostWatch::State {
 public:
  State(const LaunchPlan& plan, const HostWatchOptions& options, std::string folder)
      : folder_(std::move(folder)), ranks_(plan.ranks), rule_(options.hang_timeout, plan.ranks) {
    for (const ReachableHost& host : reachable_hosts(plan, Variables::of_process())) {
      const std::string mark = random_mark();
      agents_.push_back(std::make_unique<AgentProcess>(
          without_user(host.name), agent_command(host, options.agent, folder_, mark, lease_of(plan, options)), mark));
    }
  }
  ~State() {
    renewal_.reset();
    for (const auto& agent : agents_) {
      agent->send(WatchRequest::Kind::end);
      agent->close_input();
    }
    talk_until(seconds_now() + time_to_end, [&](const AgentProcess& agent) { return !agent.runs(); });
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const std::string& folder() const { return folder_; }

  void start() {
    if (std::exchange(started_, true)) return;
    for (const auto& agent : agents_) {
      try {
        agent->start(seconds_now());
      } catch (const Error& error) {
        log::warning(format("the ranks on {} are not watched: {}", agent->host(), error.what()));
      }
    }
    renewal_.emplace([this] {
      for (const auto& agent : agents_) agent->send(WatchRequest::Kind::alive);
    });
  }

  void add_sources(std::vector<pollfd>& sources) const {
    for (const auto& agent : agents_) agent->add_sources(sources);
  }

  std::vector<pid_t> processes() const {
    std::vector<pid_t> found;
    for (const auto& agent : agents_) {
      if (agent->runs()) found.push_back(agent->process());
    }
    return found;
  }

  std::optional<Outcome> check(bool judges) {
    if (!started_) return {};
    const double now = seconds_now();
    renewal_->resume();
    notice_gap(now);
    read(now);
    if (!judges) {
      asked_at_.reset();
      return {};
    }
    return asked_at_ ? judge(now) : ask(now);
  }

  void pause() {
    if (renewal_) renewal_->pause();
    for (const auto& agent : agents_) agent->send(WatchRequest::Kind::pause);
  }

  void collect(const std::string& run_directory) {
    const fs::path target = fs::path(run_directory) / "flight";
    std::error_code error;
    fs::create_directories(target, error);
    if (error) return log::debug(format("{}: {}", target.string(), error.message()));
    for (const auto& entry : fs::directory_iterator(target, error)) {
      if (is_record(entry.path())) fs::remove(entry.path(), error);
    }
    for (const auto& entry : fs::directory_iterator(folder_, error)) {
      if (is_record(entry.path())) copy_whole(entry.path(), target / entry.path().filename());
    }
    collect_from_others(target);
  }

 private:
  // This process was suspended, perhaps with the whole machine: neither ranks nor agents are late.
  void notice_gap(double now) {
    rule_.tick(now);
    constexpr double longest = 2.5;
    if (last_check_ && now - *last_check_ > longest) {
      for (const auto& agent : agents_) agent->forgive(now);
    }
    last_check_ = now;
  }

  void read(double now) {
    for (const auto& agent : agents_) {
      agent->read(now, [&](const WatchNews& news) { take(*agent, news, now); });
      agent->warn_if_mute(now);
      if (agent->has_given_up()) rule_.forget(agent->host());
    }
  }

  void take(const AgentProcess& agent, const WatchNews& news, double now) {
    for (const RankView& view : news.ranks) {
      if (view.rank < ranks_) rule_.note(view, agent.host(), now);
    }
    for (const RankPlace& rank : news.places) evidence_.places[rank.rank] = rank.place;
    if (news.kind == WatchNews::Kind::places && news.last) answered_.insert(&agent);
    if (news.kind == WatchNews::Kind::file) {
      files_[news.file_name] += news.bytes;
      receiving_[&agent] = news.file_name;
    }
    if (news.kind != WatchNews::Kind::files) return;
    receiving_.erase(&agent);
    answered_.insert(&agent);
  }

  std::vector<std::string> silent_hosts(double now) const {
    std::vector<std::string> silent;
    const double limit = rule_.limit().value_or(0);
    for (const auto& agent : agents_) {
      if (agent->has_given_up()) continue;  // its host is not watched
      if (agent->heard() > 0 && now - agent->heard() >= limit) silent.push_back(agent->host());
    }
    return silent;
  }

  // Asks what the processes of the ranks do if they seem to hang.
  std::optional<Outcome> ask(double now) {
    evidence_.silent_hosts = silent_hosts(now);
    if (now < next_question_ || !rule_.is_suspicious(now, evidence_.silent_hosts)) return {};
    evidence_.places.clear();
    answered_.clear();
    asked_at_ = now;
    for (const auto& agent : agents_) agent->send(WatchRequest::Kind::places);
    return {};
  }

  // Decides once the hosts have answered.
  std::optional<Outcome> judge(double now) {
    const bool all = std::all_of(agents_.begin(), agents_.end(), [&](const auto& agent) {
      const auto& silent = evidence_.silent_hosts;
      return answered_.contains(agent.get()) || std::find(silent.begin(), silent.end(), agent->host()) != silent.end();
    });
    if (!all && now - *asked_at_ < time_for_places) return {};
    asked_at_.reset();
    next_question_ = now + time_between_questions;
    const std::vector<int> debugged = debugged_ranks(evidence_), stopped = stopped_ranks(evidence_);
    const bool hangs =
        stopped.empty() ? rule_.hangs(now, evidence_.silent_hosts) : rule_.is_suspicious(now, evidence_.silent_hosts);
    if (!hangs) return {};
    const bool all_stopped = ranks_ > 1 && static_cast<int>(stopped.size()) == ranks_;
    if (debugged.empty() && !all_stopped) return hang_outcome(rule_, now, evidence_);
    rule_.forgive(now);
    if (std::exchange(warned_, true)) return {};
    log::warning(all_stopped ? "all ranks are stopped by a signal; `kill -CONT` resumes them"
                             : format("rank {} is stopped by a debugger, and the run waits", debugged.front()));
    return {};
  }

  // Reads from the agents until the time is over, or `done` for all of them.
  template <class Done>
  void talk_until(double end, const Done& done) {
    const auto is_done = [&](const auto& agent) { return done(*agent); };
    for (double now = seconds_now(); now < end; now = seconds_now()) {
      read(now);
      if (std::all_of(agents_.begin(), agents_.end(), is_done)) return;
      std::vector<pollfd> sources;
      add_sources(sources);
      poll(sources.data(), sources.size(), 20);
    }
  }

  // Receives the records that no folder of this host has.
  void collect_from_others(const fs::path& target) {
    const auto is_missing = [&](const auto& rank) { return !fs::exists(target / flight_file_name(rank.first)); };
    if (std::none_of(rule_.ranks().begin(), rule_.ranks().end(), is_missing)) return;
    const double begin = seconds_now();
    constexpr double recent = 3;
    std::set<const AgentProcess*> asked;
    answered_.clear();
    for (const auto& agent : agents_) {
      if (!agent->answers() || begin - agent->heard() > recent) continue;
      agent->send(WatchRequest::Kind::files);
      asked.insert(agent.get());
    }
    talk_until(begin + time_for_files, [&](const AgentProcess& agent) {
      return !asked.contains(&agent) || answered_.contains(&agent) || !agent.runs();
    });
    for (const auto& [agent, name] : receiving_) files_.erase(name);  // its end is missing
    for (const AgentProcess* agent : asked) {
      if (answered_.contains(agent)) continue;
      log::warning(
          format("{}: some flight records of the ranks on {} are missing, since the agent there did not send "
                 "them within {:g} s",
                 target.string(), agent->host(), time_for_files));
    }
    for (const auto& [name, bytes] : files_) {
      const fs::path path = target / name, temporary = path.string() + ".new";
      if (!is_record(path) || fs::exists(path)) continue;
      std::error_code error;
      std::ofstream(temporary, std::ios::binary) << bytes;
      fs::rename(temporary, path, error);
    }
  }

  std::string folder_;
  int ranks_;
  HangRule rule_;
  std::vector<std::unique_ptr<AgentProcess>> agents_;
  bool started_ = false, warned_ = false;
  double next_question_ = 0;
  std::optional<double> last_check_;
  std::optional<double> asked_at_;          // time when the agents were asked what the processes of the ranks do
  std::set<const AgentProcess*> answered_;  // agents that have answered the last request completely
  HangEvidence evidence_;
  std::map<std::string, std::string> files_;              // records of other hosts by name
  std::map<const AgentProcess*, std::string> receiving_;  // the record that an agent sends, perhaps not to its end
  std::optional<LeaseRenewal> renewal_;                   // while the agents run
};

HostWatch::HostWatch(const LaunchPlan& plan, const HostWatchOptions& options, std::string folder) {
  if (!folder.empty()) state_ = std::make_unique<State>(plan, options, std::move(folder));
}
HostWatch::~HostWatch() = default;

bool HostWatch::can_watch(const LaunchPlan& plan, const HostWatchOptions& options) {
  const auto* choice = std::get_if<HangChoice>(&options.hang_timeout);
  return (choice == nullptr || *choice != HangChoice::none) && !reachable_hosts(plan, Variables::of_process()).empty();
}

std::string HostWatch::folder() const { return state_ ? state_->folder() : ""; }

void HostWatch::start() {
  if (state_) state_->start();
}

void HostWatch::add_sources(std::vector<pollfd>& sources) const {
  if (state_) state_->add_sources(sources);
}

std::optional<Outcome> HostWatch::check(bool judges) { return state_ ? state_->check(judges) : std::nullopt; }

void HostWatch::pause() {
  if (state_) state_->pause();
}

std::vector<pid_t> HostWatch::processes() const { return state_ ? state_->processes() : std::vector<pid_t>(); }

void HostWatch::collect(const std::string& run_directory) {
  if (state_ && !run_directory.empty()) state_->collect(run_directory);
}

}  // namespace trainctl
