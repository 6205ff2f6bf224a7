// The doctor's findings for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "parallel/health/doctor/problems.h"

namespace trainctl {

// {ok, ranks: [facts...], problems: [{error, where, message, remedy}...]}, a line.
std::string doctor_json(const std::vector<Json>& facts, const std::vector<Problem>& problems);

// Such a line, with one more problem.
std::string with_problem(const std::string& report, const Problem& problem);

// A paragraph for each host, a table of the GPUs of all, and the problems.
std::string findings_text(const std::vector<Json>& facts, const std::vector<Problem>& problems);

// The problems but the first `shown`, and whether a run would start.
std::string verdict_text(const std::vector<Problem>& problems, std::size_t shown);

}  // namespace trainctl
