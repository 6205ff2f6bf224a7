// Derives from a flight record what a rank does, and whether it waits for others.
#include "parallel/launch/watch/rank_view.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/base/error.h"
#include "core/base/flight_state.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

const FlightEvent* last_event(const FlightHistory& line) { return line.events.empty() ? nullptr : &line.events.back(); }

// The newest event of the threads that train; null before the first one.
const FlightEvent* training_event(const FlightState& state) {
  const FlightEvent* newest = nullptr;
  for (const FlightHistory& line : state.lines) {
    const FlightEvent* event = last_event(line);
    if (line.thread == FlightThread::training && event != nullptr &&
        (newest == nullptr || event->begin > newest->begin))
      newest = event;
  }
  return newest;
}

// The oldest event under way in the lines of one kind; null if there is none.
const FlightEvent* event_under_way(const FlightState& state, FlightThread thread) {
  const FlightEvent* oldest = nullptr;
  for (const FlightHistory& line : state.lines) {
    const FlightEvent* event = last_event(line);
    if (line.thread != thread || event == nullptr || !event->under_way()) continue;
    if (oldest == nullptr || event->begin < oldest->begin) oldest = event;
  }
  return oldest;
}

// A collective that runs in the background while the training thread has begun to compute does not make it wait.
// Between steps a rank may also work for itself.
bool waits_for_ranks(const FlightEvent& training, const FlightEvent* message) {
  if (training.under_way() && training.activity == Activity::communicating) return true;
  const bool between_steps = training.activity == Activity::waiting_for_ranks;
  return message != nullptr && (between_steps || !training.under_way() || training.begin <= message->begin);
}

std::uint64_t progress_of(const FlightState& state, Activity training) {
  std::uint64_t progress = 0;
  for (const FlightHistory& line : state.lines) {
    const bool counts = line.thread == FlightThread::training || line.thread == FlightThread::communication ||
                        (line.thread == FlightThread::data &&
                         (training == Activity::waiting_for_data || training == Activity::evaluating)) ||
                        (line.thread == FlightThread::saving && training == Activity::saving);
    const FlightEvent* event = last_event(line);
    if (counts) progress += 2 * line.entered + (event != nullptr && !event->under_way() ? 1 : 0);
  }
  return progress;
}

std::int64_t step_of(const FlightState& state) {
  std::int64_t step = -1;
  for (const FlightHistory& line : state.lines) {
    if (const FlightEvent* event = last_event(line); event != nullptr && line.thread != FlightThread::saving)
      step = std::max(step, event->step);
  }
  return step;
}

}  // namespace

bool RankView::same_as(const RankView& before) const {
  return rank == before.rank && process == before.process && progress == before.progress;
}

RankView view_of(const FlightState& state, std::int64_t now) {
  RankView view{.rank = state.rank, .process = state.process};
  const FlightEvent* const training = training_event(state);
  if (training == nullptr) return view;
  view.training = training->under_way() ? training->activity : Activity::computing;
  view.progress = progress_of(state, view.training);
  const FlightEvent* const message = event_under_way(state, FlightThread::communication);
  view.waits = waits_for_ranks(*training, message);
  view.in_message = message != nullptr;
  const FlightEvent* shown = training;
  if (view.waits && message != nullptr) {
    shown = message;
  } else if (training->activity == Activity::waiting_for_data || training->activity == Activity::evaluating) {
    if (const FlightEvent* read = event_under_way(state, FlightThread::data)) shown = read;
  } else if (training->activity == Activity::saving) {
    if (const FlightEvent* save = event_under_way(state, FlightThread::saving)) shown = save;
  }
  view.activity = shown->activity;
  view.text = shown->text;
  view.step = training->step >= 0 ? training->step : step_of(state);
  constexpr double per_second = 1e9;
  view.seconds =
      std::max(0.0, static_cast<double>(now - (shown->under_way() ? shown->begin : shown->end)) / per_second);
  return view;
}

double mean_step_seconds(const FlightState& state, int fewest) {
  constexpr double per_second = 1e9;
  for (const FlightHistory& line : state.lines) {
    if (line.thread != FlightThread::training) continue;
    const auto in_step = [](const FlightEvent& event) { return event.step >= 0; };
    const auto first = std::find_if(line.events.begin(), line.events.end(), in_step);
    if (first == line.events.end()) continue;
    const auto last = std::find_if(line.events.rbegin(), line.events.rend(), in_step);
    const auto newest =
        std::find_if(first, line.events.end(), [&](const auto& each) { return each.step == last->step; });
    if (last->step - first->step < fewest) continue;
    return static_cast<double>(newest->begin - first->begin) / per_second /
           static_cast<double>(last->step - first->step);
  }
  return 0;
}

std::int64_t last_begun_step(const std::string& flight_folder) {
  std::int64_t step = -1;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(flight_folder, none)) {
    if (!entry.path().filename().string().starts_with("rank-")) continue;
    try {
      step = std::max(step, step_of(read_flight_record(entry.path(), FlightEvents::last)));
    } catch (const Error&) {  // the rank was killed before it had written the record
      continue;
    }
  }
  return step;
}

std::optional<std::int64_t> last_done_step(const std::optional<std::int64_t>& told, const std::string& flight_folder) {
  return told ? std::optional(std::max(*told, last_begun_step(flight_folder) - 1)) : std::nullopt;
}

std::string doing_text(const RankView& view) {
  const std::string& text = view.text;
  // "computing conv1" and "computing", or "saving (checkpoint)" and "saving".
  const auto of = [&](std::string_view verb) { return text.empty() ? std::string(verb) : format("{} {}", verb, text); };
  const auto with = [&](std::string_view verb) {
    return text.empty() ? std::string(verb) : format("{} ({})", verb, text);
  };
  switch (view.activity) {
    case Activity::starting:
      return with("starting");
    case Activity::reading_data:
      return text.empty() ? "reading data" : of("reading");
    case Activity::waiting_for_data:
      return "waiting for data";
    case Activity::computing:
      return of("computing");
    case Activity::communicating:
      return text.empty() ? "in a collective" : of("in");
    case Activity::updating:
      return "updating the weights";
    case Activity::saving:
      return with("saving");
    case Activity::evaluating:
      return with("evaluating");
    case Activity::waiting_for_ranks:
      return with("outside of steps");  // a rank that waits there is in a collective
    case Activity::ended:
      return "ending";
  }
  return "";
}

}  // namespace trainctl
