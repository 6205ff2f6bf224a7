// trainctl: the program.
#include "cmd/subcommand.h"

int main(int argc, char** argv) { return trainctl::run_command_line(argc, argv); }
