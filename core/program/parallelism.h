// What a parallel strategy does to the programs of one rank: the two functions that core calls and parallel implements.
#pragma once

#include <functional>

#include "core/program/program.h"

namespace trainctl {

// The two functions are applied to training and evaluation alike; an empty function changes nothing.
struct Parallelism {
  MeshRank rank;
  // Whether the gradients of a micro-batch are added to those of the micro-batches before; else each micro-batch's
  // backward pass begins anew, and `distribute` adds them up.
  bool keeps_gradients = true;
  // Whether collectives lie within micro-batches, so that each rank runs as many of them as the others, the last ones
  // without samples where it has fewer.
  bool equal_micro_batches = false;
  // Makes this rank's forward graph from the whole one: splits weights, cuts stages. Fusion and differentiation follow,
  // so that no fusion crosses a cut, and the backward pass of a collective follows from its gradient rule.
  std::function<Graph(Graph)> cut;
  // Makes a program that shares its work with the other ranks from one whose segments and schedule are built. The
  // program's flat layout has an order but no offsets yet, and its update segment is empty: the function appends the
  // reductions of gradients, which finish_training puts between the agreement and the optimizer.
  std::function<Program(Program)> distribute;
};

}  // namespace trainctl
