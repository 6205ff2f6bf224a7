// The sections of the faults, for the table, and what several of them share.
#pragma once

#include <optional>
#include <string>

#include "core/spec/keys.h"
#include "parallel/health/faults/fault.h"

namespace trainctl {

// Defined in processes.cpp:
Section kill_section();
Section hang_section();
Section slow_section();
Section lose_host_section();
// Defined in numbers.cpp:
Section nan_section();
Section corrupt_section();
// Defined in storage.cpp:
Section torn_checkpoint_section();
Section full_disk_section();
// Defined in link.cpp:
Section cut_link_section();

// The meanings of keys that several faults have.
inline constexpr const char* fault_step_meaning = "The number of training steps after which it happens.";
inline constexpr const char* fault_rank_meaning = "The rank that it happens to.";

// A fault that happens to one rank.
struct RankFault : FaultOptions {
  int rank = 0;

  std::optional<int> named_rank() const override { return rank; }
  std::string why_impossible(const FaultScene& scene) const override { return why_no_rank(*this, scene.ranks()); }
};

// Returns why a fault cannot happen to the host: it has no ranks, or rank 0 is on it; "" if it can.
std::string why_no_host(const std::string& host, const FaultScene& scene);

}  // namespace trainctl
