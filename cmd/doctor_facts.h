// What the doctor finds on one rank's machine, as JSON: see the fields in doctor_facts.cpp.
#pragma once

#include <string>

namespace trainctl {

// Where a run's directory would be made, as rank 0 has prepared it: a mark lies in `folder`, which ranks that share the
// folder see.
struct RunFolder {
  std::string folder;
  std::string mark;
};

// Facts that a rank knows alone, as the text of a JSON object. Throws nothing for what is missing: that is a fact.
// `cores`: of the host, for all its ranks.
std::string rank_facts(int rank, int local_rank, const std::string& host, int cores, const RunFolder& folder);

}  // namespace trainctl
