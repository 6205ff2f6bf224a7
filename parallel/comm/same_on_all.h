// Checks that all ranks have the same program, config and data before they train together.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/document.h"

namespace trainctl {

class Communicator;
class Stream;

// Names and values to compare, in the same order on all ranks.
using RankValues = std::vector<std::pair<std::string, std::string>>;

// Adds every value of a document with its path, such as {"train.optimizer.learning_rate", "0.1"}. An absolute path is
// added as "a path", since hosts may keep the same files in different folders.
void add_document(RankValues& values, const Node& document);

// Compares the values of all ranks by hash, with one all-reduce of 16 bytes. If they differ, throws the same
// CollectiveError{config} on all ranks, with the names of the values, the ranks and the differences. `hosts`: the host
// name of each rank. Waits for the stream.
void require_same_on_all(const RankValues& mine, const std::vector<std::string>& hosts, Communicator& world,
                         Stream& stream);

// Describes each value that differs, such as "seed is 1 on rank 0 and 2 on rank 3 (node2)".
std::vector<std::string> describe_differences(const RankValues& first, const RankValues& other, int rank,
                                              const std::string& host);

}  // namespace trainctl
