// Describes ops in words, for messages and the flight record.
#pragma once

#include <string>

namespace trainctl {

struct Op;
struct PlacedProgram;
struct Program;

// Describes a collective, a message or the wait for one, and its data, for example "all_reduce of bucket 3 (conv5 ...
// fc1)": a bucket's layers are named in the order of the forward pass.
std::string collective_text(const Program& program, const Op& op);

// Describes any op of a segment, for example "conv2d 'c3' in backward".
std::string op_text(const PlacedProgram& program, int segment, int op);

}  // namespace trainctl
