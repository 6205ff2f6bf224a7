// What a parallel strategy does to the programs of one rank: the two functions that core calls and parallel implements.
#pragma once

#include <functional>

#include "core/program/program.h"

namespace trainctl {

// Both are applied to training and evaluation alike; an empty function changes nothing.
struct Parallelism {
  MeshRank rank;
  // From the whole forward graph to this rank's: split weights, stages. Fusion and differentiation follow, so that no
  // fusion crosses a cut and collectives bring their own backward pass.
  std::function<Graph(Graph)> cut;
  // From a program whose segments and schedule stand to one that shares its work with the other ranks. Its flat layout
  // has an order but no offsets yet, and its update holds nothing but what this function puts there: reductions of
  // gradients, which `finish` puts behind the agreement and in front of the optimizer.
  std::function<Program(Program)> distribute;
};

}  // namespace trainctl
