// Queries a terminal.
#include "io/metrics/terminal.h"

#include <sys/ioctl.h>

#include <cstdlib>
#include <string_view>

namespace trainctl {

int terminal_columns(int descriptor) {
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool terminal_redraws() {
  const char* kind = std::getenv("TERM");
  return kind != nullptr && std::string_view(kind) != "dumb";
}

}  // namespace trainctl
