// Sends texts between ranks.
#include "parallel/comm/text.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/format.h"

namespace trainctl {

std::string broadcast_text(const std::string& text, int root, Communicator& world, Stream& stream) {
  std::int64_t size = static_cast<std::int64_t>(text.size());
  world.broadcast({&size, DType::int64, 1}, root, stream);
  stream.synchronize();
  std::string all = text;
  all.resize(static_cast<std::size_t>(size));
  world.broadcast({all.data(), DType::uint8, size}, root, stream);
  stream.synchronize();
  return all;
}

void send_text(const std::string& text, int peer, Communicator& world, Stream& stream) {
  std::string mine = text;
  std::int64_t size = static_cast<std::int64_t>(mine.size());
  world.send({&size, DType::int64, 1}, peer, stream);
  world.send({mine.data(), DType::uint8, size}, peer, stream);
  stream.synchronize();
}

std::string receive_text(int peer, Communicator& world, Stream& stream) {
  std::int64_t size = 0;
  world.receive({&size, DType::int64, 1}, peer, stream);
  stream.synchronize();
  std::string text(static_cast<std::size_t>(size), '\0');
  world.receive({text.data(), DType::uint8, size}, peer, stream);
  stream.synchronize();
  return text;
}

std::vector<std::string> gather_texts(const std::string& text, Communicator& world, Stream& stream) {
  if (world.rank() != 0) {
    send_text(text, 0, world, stream);
    return {};
  }
  std::vector<std::string> all = {text};
  for (int rank = 1; rank < world.size(); ++rank) all.push_back(receive_text(rank, world, stream));
  return all;
}

std::string first_text(const std::string& text, Communicator& world, Stream& stream) {
  constexpr std::size_t width = 256;
  std::vector<char> all(width * static_cast<std::size_t>(world.size()), 0);
  std::memcpy(all.data() + width * static_cast<std::size_t>(world.rank()), text.data(),
              std::min(text.size(), width - 1));
  world.all_gather({all.data(), DType::uint8, static_cast<std::int64_t>(all.size())}, stream);
  stream.synchronize();
  for (int rank = 0; rank < world.size(); ++rank) {
    const char* found = all.data() + width * static_cast<std::size_t>(rank);
    if (*found != 0) return world.size() == 1 ? std::string(found) : format("{} (rank {})", found, rank);
  }
  return {};
}

bool any_rank(bool mine, Communicator& world, Stream& stream) {
  std::int32_t any = mine ? 1 : 0;
  world.all_reduce({&any, DType::int32, 1}, Reduction::maximum, stream);
  stream.synchronize();
  return any != 0;
}

}  // namespace trainctl
