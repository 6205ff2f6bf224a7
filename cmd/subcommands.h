// The subcommands, each defined in the file of its name.
#pragma once

#include "cmd/subcommand.h"

namespace trainctl {

Subcommand run_subcommand();
Subcommand check_subcommand();
Subcommand plan_subcommand();
Subcommand eval_subcommand();
Subcommand predict_subcommand();
Subcommand report_subcommand();
Subcommand watch_subcommand();
Subcommand verify_scaling_subcommand();
Subcommand bench_subcommand();
Subcommand inspect_subcommand();
Subcommand init_subcommand();
Subcommand import_subcommand();
Subcommand export_subcommand();
Subcommand launch_subcommand();
Subcommand remote_shell_subcommand();
Subcommand doctor_subcommand();
Subcommand schema_subcommand();
Subcommand completion_subcommand();

}  // namespace trainctl
