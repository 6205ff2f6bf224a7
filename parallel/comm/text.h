// Texts between ranks: short messages and small documents.
#pragma once

#include <string>
#include <vector>

#include "core/backend/communicator.h"

namespace trainctl {

// The root's text on every rank. Waits.
std::string broadcast_text(const std::string& text, int root, Communicator& world, Stream& stream);

// A text from one rank to another: each sends what the other receives. Waits.
void send_text(const std::string& text, int peer, Communicator& world, Stream& stream);
std::string receive_text(int peer, Communicator& world, Stream& stream);

// The texts of all ranks on rank 0, in their order; nothing on the others. Waits.
std::vector<std::string> gather_texts(const std::string& text, Communicator& world, Stream& stream);

// The text of the lowest rank that has one, with "(rank N)" behind it where there are several ranks; "" where none has.
// Texts are cut to 255 bytes. Waits.
std::string first_text(const std::string& text, Communicator& world, Stream& stream);

// Whether any rank says so. Waits.
bool any_rank(bool mine, Communicator& world, Stream& stream);

}  // namespace trainctl
