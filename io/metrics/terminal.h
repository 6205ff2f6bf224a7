// The terminal that a descriptor leads to.
#pragma once

namespace trainctl {

// The width in columns; 0 where the descriptor is no terminal, or one that does not tell.
int terminal_columns(int descriptor);

// Whether the kind of terminal that TERM names can erase and redraw lines.
bool terminal_redraws();

}  // namespace trainctl
