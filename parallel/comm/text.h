// Sends texts between ranks: short messages and small documents.
#pragma once

#include <string>
#include <vector>

#include "core/backend/communicator.h"

namespace trainctl {

// Returns the root's text on every rank. Waits.
std::string broadcast_text(const std::string& text, int root, Communicator& world, Stream& stream);

// Send a text from one rank to another: one rank calls send_text, the other receive_text. Both wait.
void send_text(const std::string& text, int peer, Communicator& world, Stream& stream);
std::string receive_text(int peer, Communicator& world, Stream& stream);

// Returns the texts of all ranks on rank 0, in the order of the ranks; empty on the other ranks. Waits.
std::vector<std::string> gather_texts(const std::string& text, Communicator& world, Stream& stream);

// Returns the first text that is not empty, in the order of the ranks, followed by "(rank N)" if there are several
// ranks; "" if all texts are empty. Texts are cut to 255 bytes. Waits.
std::string first_text(const std::string& text, Communicator& world, Stream& stream);

// Whether `mine` is true on any rank. Waits.
bool any_rank(bool mine, Communicator& world, Stream& stream);

}  // namespace trainctl
