// The entry point of trainctl.
#include "cmd/subcommands.h"
#include "core/base/output.h"
#include "core/base/stack.h"

int main(int argc, char** argv) {
  trainctl::prepare_descriptors();
  trainctl::prepare_stack();
  return trainctl::run_command_line(argc, argv);
}
