// The parameters of teachers, which are moving averages of other parameters (ProgramSpec::teachers).
#pragma once

#include <string>

#include "core/program/network.h"
#include "core/program/program_spec.h"

namespace trainctl {

// The name of the parameter that a teacher's parameter follows; "" if the name is none of the teacher's.
std::string followed_by(const ProgramSpec::Teacher& teacher, const std::string& parameter);

// Freezes the parameters of teachers and adds them to the network's `teachers`. Reports teachers without parameters,
// and parameters that have no counterpart of the same shape that trains.
void follow_teachers(const ProgramSpec& spec, Network& network, Reader& reader);

}  // namespace trainctl
