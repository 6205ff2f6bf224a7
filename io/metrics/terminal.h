// Queries the terminal of a file descriptor.
#pragma once

namespace trainctl {

// Returns the width in columns; 0 if the descriptor is not a terminal or the width is unknown.
int terminal_columns(int descriptor);

// Whether the terminal type in TERM can erase and redraw lines.
bool terminal_redraws();

}  // namespace trainctl
