// Opens and removes flight records.
#include "parallel/launch/ranks/rank_flight.h"

#include <sys/stat.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/flight_record.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/own_folder.h"
#include "parallel/launch/hosts.h"

namespace trainctl {

std::unique_ptr<FlightRecord> open_flight(const std::string& folder, int rank, int ranks) {
  if (folder.empty()) return nullptr;
  mkdir(folder.c_str(), 0700);
  if (!is_own_folder(folder)) {
    log::debug(format("there is no flight record: {} is no folder of this user", folder));
    return nullptr;
  }
  try {
    return std::make_unique<FlightRecord>(folder, rank, ranks, this_host());
  } catch (const Error& error) {
    log::debug(std::string("there is no flight record: ") + error.what());
    return nullptr;
  }
}

void remove_flights_from(const std::string& folder, int first_rank) {
  for (int rank = first_rank; unlink((folder + "/" + flight_file_name(rank)).c_str()) == 0; ++rank) {
  }
}

}  // namespace trainctl
