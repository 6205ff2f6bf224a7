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
using RankFacts = std::vector<std::pair<std::string, std::string>>;

// Every value of a document with its path: {"train.optimizer.learning_rate", "0.1"}. Of an absolute path only that it
// is one: hosts may keep the same files in different places.
void add_document(RankFacts& facts, const Node& document);

// Compares the facts of all ranks by hash, in one all-reduce of 16 bytes. Where they differ it throws, on all ranks the
// same, CollectiveError{config} that names what differs, on which ranks, and how. `hosts`: of each rank. Waits.
void require_same_on_all(const RankFacts& mine, const std::vector<std::string>& hosts, Communicator& world,
                         Stream& stream);

// For each fact that differs: "seed is 1 on rank 0 and 2 on rank 3 (node2)".
std::vector<std::string> describe_differences(const RankFacts& first, const RankFacts& other, int rank,
                                              const std::string& host);

}  // namespace trainctl
