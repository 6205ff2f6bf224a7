// The doctor's findings for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "cmd/doctor_problems.h"

namespace trainctl {

// {ok, ranks: [facts...], problems: [{error, where, message, remedy}...]}, a line.
std::string doctor_json(const std::vector<Json>& facts, const std::vector<Problem>& problems);

// A paragraph for each host, a table of its GPUs, the problems, and whether a run would start.
std::string doctor_text(const std::vector<Json>& facts, const std::vector<Problem>& problems);

}  // namespace trainctl
