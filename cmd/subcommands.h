// The subcommands, each defined in the file of its name, and the command line that runs them.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace trainctl {

struct Subcommand {
  std::string name;
  std::string summary;
  std::string example;  // shown by --help
  // Declares the options on the subcommand's parser. Returns the function to call after parsing, which returns the exit
  // code.
  std::function<std::function<int()>(CLI::App&)> add;
};

// Return the subcommands.
Subcommand run_subcommand();
Subcommand check_subcommand();
Subcommand plan_subcommand();
Subcommand eval_subcommand();
Subcommand predict_subcommand();
Subcommand report_subcommand();
Subcommand watch_subcommand();
Subcommand verify_scaling_subcommand();
Subcommand bench_subcommand();
Subcommand resize_subcommand();
Subcommand replay_subcommand();
Subcommand rehearse_subcommand();
Subcommand inspect_subcommand();
Subcommand init_subcommand();
Subcommand import_subcommand();
Subcommand export_subcommand();
Subcommand launch_subcommand();
Subcommand remote_shell_subcommand();
Subcommand host_agent_subcommand();
Subcommand doctor_subcommand();
Subcommand tokenizer_subcommand();
Subcommand schema_subcommand();
Subcommand completion_subcommand();

// Parses the command line and runs the subcommand. Reports an error once, on stderr, and returns the exit code.
int run_command_line(int argc, char** argv);

}  // namespace trainctl
