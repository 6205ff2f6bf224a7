// Checks that all ranks have the same program, config and data before they compute anything together.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/document.h"

namespace trainctl {

class Communicator;
class Stream;

// Names and values, in an order that does not depend on the rank.
using RankValues = std::vector<std::pair<std::string, std::string>>;

// Every value of a document with its path: {"train.optimizer.learning_rate", "0.1"}. Of an absolute path only that it
// is one: hosts may keep the same files in different places.
void add_document(RankValues& values, const Node& document);

// Compares the values of all ranks by hash, in one all-reduce of 16 bytes. Where they differ it throws, on all ranks
// the same, CollectiveError{config} that names what differs, on which ranks, and how. `hosts`: of each rank. Waits.
void require_same_on_all(const RankValues& mine, const std::vector<std::string>& hosts, Communicator& world,
                         Stream& stream);

// For each value that differs: "seed is 1 on rank 0 and 2 on rank 3 (node2)".
std::vector<std::string> describe_differences(const RankValues& first, const RankValues& other, int rank,
                                              const std::string& host);

}  // namespace trainctl
