// Compares the ranks' times.
#include "parallel/health/stragglers.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/clock.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/median.h"

namespace trainctl {
namespace {

constexpr double smallest_share = 0.1;  // of a step
constexpr double smallest_rest = 0.2;   // of a step, if neither data nor computing is slow
constexpr double long_window = 1;       // seconds of a comparison; shorter times vary by chance
constexpr double short_window = 0.15;   // seconds of a comparison until a straggler was reported
constexpr std::int64_t short_window_steps = 8;
constexpr double exchange_seconds = 0.2;        // between exchanges, so that a slow-down delays the next one by little
constexpr std::uint64_t too_hot = 0x20 | 0x40;  // reasons of NVML for a lowered clock

using Part = double RankSeconds::*;

double per_step(const RankSeconds& times, Part part) {
  return times.*part / static_cast<double>(std::max<std::int64_t>(times.steps, 1));
}

// The median of a part over the ranks except one.
double usual(std::span<const int> ranks, std::span<const RankSeconds> times, int except, Part part) {
  std::vector<double> values;
  for (int rank : ranks) {
    if (rank != except) values.push_back(per_step(times[static_cast<std::size_t>(rank)], part));
  }
  return median(std::move(values));
}

// The seconds of a step. A rank may have left out some of its time (StragglerWatch::restart()), for which others
// waited.
double step_seconds(std::span<const int> ranks, std::span<const RankSeconds> times) {
  double longest = 0;
  for (int rank : ranks) {
    longest = std::max(longest, per_step(times[static_cast<std::size_t>(rank)], &RankSeconds::all));
  }
  return longest;
}

Lateness reason(Part part, int rank, std::span<const int> throttled) {
  if (part == &RankSeconds::data) return Lateness::data;
  const bool is_hot = std::find(throttled.begin(), throttled.end(), rank) != throttled.end();
  return is_hot ? Lateness::thermal : Lateness::compute;
}

std::string ms_text(double seconds) { return format("{:.3g} ms", 1e3 * seconds); }

}  // namespace

std::optional<Straggler> find_straggler(std::span<const int> ranks, std::span<const RankSeconds> times,
                                        std::span<const int> throttled) {
  if (ranks.size() < 2) return {};
  const auto of = [&](int rank, Part part) { return per_step(times[static_cast<std::size_t>(rank)], part); };
  const int late = *std::min_element(ranks.begin(), ranks.end(), [&](int a, int b) {
    return of(a, &RankSeconds::communicating) < of(b, &RankSeconds::communicating);
  });
  const auto excess = [&](Part part) { return of(late, part) - usual(ranks, times, late, part); };
  Straggler found{.rank = late, .seconds = step_seconds(ranks, times)};
  const double waits = -excess(&RankSeconds::communicating);
  found.share = waits / std::max(found.seconds, 1e-9);
  if (found.share < smallest_share) return {};
  const double data = excess(&RankSeconds::data), computing = excess(&RankSeconds::computing);
  const double rest = waits - std::max(data, 0.0) - std::max(computing, 0.0);
  if (rest > std::max(data, computing)) {
    if (found.share < smallest_rest) return {};
    found.why = Lateness::network;
    return found;
  }
  const Part part = data > computing ? &RankSeconds::data : &RankSeconds::computing;
  found.why = reason(part, late, throttled);
  found.own = of(late, part);
  found.others = usual(ranks, times, late, part);
  found.seconds = std::max(found.seconds, found.own);  // the windows of both begin and end at other moments
  return found;
}

std::optional<Straggler> StragglersOfUnlike::add(std::span<const int> ranks, std::span<const RankSeconds> times,
                                                 std::span<const int> throttled) {
  const auto of = [&](int rank, Part part) { return per_step(times[static_cast<std::size_t>(rank)], part); };
  const double seconds = step_seconds(ranks, times);
  const bool is_first = fastest_.empty();
  if (is_first) fastest_.resize(ranks.size(), {.data = HUGE_VAL, .computing = HUGE_VAL});
  std::optional<Straggler> found;
  for (const Part part : {&RankSeconds::data, &RankSeconds::computing}) {
    const auto excess = [&](std::size_t i) { return of(ranks[i], part) - fastest_[i].*part; };
    for (std::size_t i = 0; i < ranks.size() && ranks.size() > 1 && !is_first; ++i) {
      std::vector<double> of_others;
      for (std::size_t k = 0; k < ranks.size(); ++k) {
        if (k != i) of_others.push_back(excess(k));
      }
      const double share = (excess(i) - std::max(median(std::move(of_others)), 0.0)) / std::max(seconds, 1e-9);
      if (share < smallest_share || (found && share <= found->share)) continue;
      found = Straggler{.rank = ranks[i],
                        .why = reason(part, ranks[i], throttled),
                        .share = share,
                        .own = of(ranks[i], part),
                        .others = fastest_[i].*part,
                        .seconds = seconds,
                        .is_alone = true};
    }
    for (std::size_t i = 0; i < ranks.size(); ++i) fastest_[i].*part = std::min(fastest_[i].*part, of(ranks[i], part));
  }
  return found;
}

bool StragglerNews::add(const std::optional<Straggler>& found, bool is_short) {
  std::optional<std::pair<int, Lateness>> now;
  if (found) now = {found->rank, found->why};
  if (now != last_) times_ = 0;
  times_ += is_short ? 1 : 2;
  last_ = now;
  if (times_ < short_comparisons || now == reported_) return false;
  reported_ = now;
  has_reported_ = has_reported_ || found.has_value();
  return found.has_value();
}

std::string describe(const Straggler& straggler, const std::vector<std::string>& hosts) {
  const bool several = std::any_of(hosts.begin(), hosts.end(), [&](const auto& host) { return host != hosts.front(); });
  const std::string host = several ? " on host " + hosts[static_cast<std::size_t>(straggler.rank)] : "";
  const std::string begin = format("rank {}{} is a straggler: the other ranks wait {:.0f} % of a step for it",
                                   straggler.rank, host, 100 * straggler.share);
  const std::string times = format("takes {} of {}, and {} {}", ms_text(straggler.own), ms_text(straggler.seconds),
                                   ms_text(straggler.others), straggler.is_alone ? "before" : "on the other ranks");
  switch (straggler.why) {
    case Lateness::data:
      return format("{}; its data reading {}", begin, times);
    case Lateness::compute:
      return format("{}; its computing {}: look for other programs on its cores or its GPU", begin, times);
    case Lateness::thermal:
      return format("{}; its computing {}, since its temperature slows its GPU down: check the cooling", begin, times);
    case Lateness::network:
      break;
  }
  return format(
      "{}; neither its data reading nor its computing takes longer: {}", begin,
      several ? "check the network of its host, and other programs there" : "look for other programs on its cores");
}

// What a rank sends to the others.
struct StragglerWatch::Row {
  RankSeconds times;
  std::int64_t interval = 0;  // number of steps until the next exchange; rank 0's value applies
  bool has_reported = false;  // whether rank 0 has reported a straggler
};

// Whether the times are those of enough steps for a comparison.
bool StragglerWatch::is_full(const RankSeconds& times, bool has_reported) {
  return times.all >= long_window || (!has_reported && times.all >= short_window && times.steps >= short_window_steps);
}

// Returns the number of steps until the next exchange, which take 0.2 s, or those that a short window lacks.
std::int64_t StragglerWatch::interval(bool has_reported) const {
  const double speed = static_cast<double>(times_.steps) / std::max(times_.all, 1e-9);
  const auto most = std::max<std::int64_t>(std::llround(speed * exchange_seconds), 1);
  if (has_reported) return most;
  const bool begins_new = !has_warmed_up_ || is_full(times_, has_reported);
  const std::int64_t left = short_window_steps - (begins_new ? 0 : times_.steps);
  return left > 0 ? std::min(most, left) : most;
}

StragglerWatch::StragglerWatch(Communicator& world, Stream& stream, std::vector<std::string> hosts,
                               std::vector<int> stages)
    : world_(world), stream_(stream), hosts_(std::move(hosts)) {
  std::map<int, std::vector<int>> ranks_of;
  for (std::size_t rank = 0; rank < stages.size(); ++rank) ranks_of[stages[rank]].push_back(static_cast<int>(rank));
  for (auto& [stage, ranks] : ranks_of) {
    if (ranks.size() > 1) {
      alike_.push_back(std::move(ranks));
    } else {
      unlike_.push_back(ranks.front());
    }
  }
  news_.resize(alike_.size() + 1);
}

void StragglerWatch::restart() { last_ = seconds_now(); }

void StragglerWatch::add(double waited_seconds, const StepEngine::Phases& phases) {
  const double now = seconds_now();
  times_.all += now - last_;
  last_ = now;
  times_.data += waited_seconds;
  times_.computing += phases.upload + phases.forward + phases.backward + phases.update;
  times_.communicating += phases.communication;
  ++times_.steps;
}

void StragglerWatch::step(std::int64_t step, std::span<const GpuSample> gpus) {
  if (step < next_) return;
  const bool has_reported =
      std::any_of(news_.begin(), news_.end(), [](const auto& news) { return news.has_reported(); });
  std::vector<Row> rows(static_cast<std::size_t>(world_.size()));
  rows[static_cast<std::size_t>(world_.rank())] = {times_, interval(has_reported), has_reported};
  world_.describe_next("all_gather of the ranks' times");
  world_.all_gather({rows.data(), DType::uint8, static_cast<std::int64_t>(rows.size() * sizeof(Row))}, stream_);
  stream_.synchronize();
  next_ = step + rows.front().interval;
  if (has_warmed_up_ && !is_full(rows.front().times, rows.front().has_reported)) return;
  std::vector<RankSeconds> times;
  for (const Row& row : rows) times.push_back(row.times);
  times_ = {};
  if (std::exchange(has_warmed_up_, true) && world_.rank() == 0) compare(times, gpus);
}

void StragglerWatch::compare(std::span<const RankSeconds> times, std::span<const GpuSample> gpus) {
  std::vector<int> hot;
  for (const GpuSample& sample : gpus) {
    if ((sample.reading.throttled & too_hot) != 0) hot.push_back(sample.rank);
  }
  for (std::size_t i = 0; i < news_.size(); ++i) {
    const std::optional<Straggler> found =
        i < alike_.size() ? find_straggler(alike_[i], times, hot) : of_unlike_.add(unlike_, times, hot);
    if (news_[i].add(found, times.front().all < long_window)) log::warning(describe(*found, hosts_));
  }
}

}  // namespace trainctl
