// trainctl: the program.
#include "cmd/subcommand.h"
#include "core/base/output.h"

int main(int argc, char** argv) {
  trainctl::prepare_descriptors();
  return trainctl::run_command_line(argc, argv);
}
