// What a rank does, as its host's agent tells the supervisor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/flight_record.h"

namespace trainctl {

struct FlightState;

struct RankView {
  int rank = 0;
  int process = 0;                         // process id on its host
  Activity training = Activity::starting;  // what the training thread does
  bool waits = false;                      // whether it waits for other ranks
  bool in_message = false;                 // whether a collective or message is under way, perhaps in the background
  Activity activity = Activity::starting;  // what the rank does, with the data or the message that it waits for
  std::string text = {};                   // what exactly, such as "all_reduce of bucket 3 (conv5 ... fc1)"
  std::int64_t step = -1;                  // -1: no step has begun since the start
  double seconds = 0;                      // for how long it has done this
  std::uint64_t progress = 0;              // another number than before if the rank has made progress
  double step_seconds = 0;                 // mean time of its last steps, reported once; 0: not reported

  // Whether the rank has made no progress and still does the same.
  bool same_as(const RankView& before) const;
};

// Derives the view from a rank's flight record. `now`: flight_clock() of the rank's host. Reading data counts as
// progress while the training thread waits for data, and saving while it waits for a checkpoint.
RankView view_of(const FlightState& state, std::int64_t now);

// Returns the mean time of the steps whose events a record still has; 0 if these are fewer than `fewest`. Requires all
// events.
double mean_step_seconds(const FlightState& state, int fewest);

// Returns the number of the step that a rank has begun last, according to the flight records in a folder, which may
// have outlived their ranks; -1 if no rank has begun a step, or if there are no records. Steps count from 1.
std::int64_t last_begun_step(const std::string& flight_folder);

// Returns the number of steps that were surely done. Rank 0 reports it at most once a second, so that the flight
// records in the folder may name a later step. Empty if rank 0 has reported none: a record that names a step then may
// have been resumed at it.
std::optional<std::int64_t> last_done_step(const std::optional<std::int64_t>& told, const std::string& flight_folder);

// Returns what the rank does for a sentence, such as "reading img_0412.jpg".
std::string doing_text(const RankView& view);

}  // namespace trainctl
