// Whether the ranks of MPI still answer, by short messages beside those of all communicators.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/backend/attendance.h"
#include "parallel/comm/mpi_check.h"

namespace trainctl {

// Over all ranks of MPI, whose messages between pairs on MPI_COMM_WORLD are this object's alone. Making one is no
// collective.
class MpiAttendance final : public Attendance {
 public:
  explicit MpiAttendance(std::chrono::milliseconds deadline);

  // The name of the host that each rank runs on, from when they are known.
  void set_hosts(const std::vector<std::string>& hosts);

  void answer() override;
  std::vector<int> absent() override;
  std::string name(const std::vector<int>& ranks) const override;

 private:
  void answer_calls();
  void note_answers(std::vector<bool>& is_there);

  int rank_ = 0;
  int size_ = 1;
  std::vector<std::string> hosts_;  // empty: not known, or one host
  std::mutex mutex_;
  std::optional<std::vector<int>> absent_;  // under the mutex; set by the first roll call
};

}  // namespace trainctl
