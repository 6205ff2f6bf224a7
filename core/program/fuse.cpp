// Fusion: fewer, larger ops that compute the same.
#include "core/program/fuse.h"

namespace trainctl {

Graph fuse(Graph graph) { return graph; }

Backward fuse(Backward backward) { return backward; }

}  // namespace trainctl
