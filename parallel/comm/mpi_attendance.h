// Finds out whether the MPI ranks still answer, by short messages that are independent of all communicators.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/backend/attendance.h"
#include "parallel/comm/mpi_check.h"

namespace trainctl {

// Attendance of all MPI ranks. Only this object may send messages between pairs of ranks on MPI_COMM_WORLD. The
// constructor is not collective.
class MpiAttendance final : public Attendance {
 public:
  explicit MpiAttendance(std::chrono::milliseconds deadline);

  // Sets the host name of each rank, once they are known.
  void set_hosts(const std::vector<std::string>& hosts);

  void answer() override;
  std::vector<int> absent() override;
  std::string name(const std::vector<int>& ranks) const override;

 private:
  void answer_calls();
  void note_answers(std::vector<bool>& is_there);

  int rank_ = 0;
  int size_ = 1;
  std::vector<std::string> hosts_;  // empty: unknown, or all ranks run on one host
  std::mutex mutex_;
  std::optional<std::vector<int>> absent_;  // guarded by the mutex; set by the first roll call
};

}  // namespace trainctl
