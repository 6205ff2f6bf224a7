// The subcommands, each defined in the file of its name.
#pragma once

#include "cmd/subcommand.h"

namespace trainctl {

// run, check, eval, inspect, bench, schema: declared here as they exist, and listed in cmd/command_line.cpp.
Subcommand inspect_subcommand();
Subcommand schema_subcommand();

}  // namespace trainctl
