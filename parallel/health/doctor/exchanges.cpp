// Exchanges random data between GPUs, in rounds of disjoint pairs.
#include "parallel/health/doctor/exchanges.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/backend/backend.h"
#include "core/backend/communicator.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/random.h"
#include "parallel/comm/text.h"
#include "parallel/health/doctor/pairs.h"

namespace trainctl {
namespace {

// Small messages may be sent by another protocol than large ones. The sizes are no multiples of 16 bytes.
constexpr std::int64_t message_words[] = {1021, (4 << 20) - 3};  // 4 KiB, 16 MiB

std::vector<std::uint32_t> random_words(std::int64_t count, int from, int to) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(count));
  const std::array<std::uint32_t, 2> key = {static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to)};
  for (std::size_t i = 0; i < words.size(); i += philox_words) {
    const PhiloxBlock block = philox({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(count), 0, 0}, key);
    std::copy_n(block.begin(), std::min<std::size_t>(philox_words, words.size() - i),
                words.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return words;
}

// The GPU's memory for messages, and the stream on which they are sent.
struct Device {
  Communicator& gpus;
  Backend& backend;
  Memory memory;
  std::unique_ptr<Stream> stream;
};

void send(Device& device, const std::vector<std::uint32_t>& words, int to) {
  const auto count = std::ssize(words);
  device.backend.copy(device.memory.get(), words.data(), 4 * count, *device.stream);
  device.gpus.send({device.memory.get(), DType::int32, count}, to, *device.stream);
  device.stream->synchronize();
}

Exchange receive(Device& device, const std::vector<std::uint32_t>& expected, int from) {
  const auto count = std::ssize(expected);
  std::vector<std::uint32_t> received(expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) received[i] = ~expected[i];  // no bit is right by chance
  device.backend.copy(device.memory.get(), received.data(), 4 * count, *device.stream);
  device.gpus.receive({device.memory.get(), DType::int32, count}, from, *device.stream);
  device.backend.copy(received.data(), device.memory.get(), 4 * count, *device.stream);
  device.stream->synchronize();
  Exchange exchange{.from = from, .to = device.gpus.rank(), .bytes = 4 * count};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::uint32_t wrong = received[i] ^ expected[i];
    if (wrong != 0 && exchange.wrong_bits == 0) exchange.first_wrong = static_cast<std::int64_t>(4 * i);
    exchange.wrong_bits += std::popcount(wrong);
  }
  return exchange;
}

// Exchanges all messages with another rank. Returns those that this rank has received.
std::vector<Exchange> exchange_with(Device& device, int other) {
  const int own = device.gpus.rank();
  std::vector<Exchange> received;
  try {
    for (const std::int64_t count : message_words) {
      for (const int from : {std::min(own, other), std::max(own, other)}) {
        const std::vector<std::uint32_t> words = random_words(count, from, from == own ? other : own);
        if (from == own) {
          send(device, words, other);
        } else {
          received.push_back(receive(device, words, other));
        }
      }
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::peer) throw;
    throw Error(ErrorKind::peer,
                format("the GPUs of ranks {} and {} do not exchange data: {}", std::min(own, other),
                       std::max(own, other), error.what()),
                "set NCCL_P2P_DISABLE=1, so that the data goes through the host's memory, and try again");
  }
  return received;
}

}  // namespace

Json to_json(const std::vector<Exchange>& exchanges) {
  Json all = Json::array();
  for (const Exchange& one : exchanges) {
    all.push_back({{"from", one.from},
                   {"to", one.to},
                   {"bytes", one.bytes},
                   {"wrong_bits", one.wrong_bits},
                   {"first_wrong_byte", one.wrong_bits == 0 ? Json() : Json(one.first_wrong)}});
  }
  return all;
}

std::vector<Exchange> exchanges_in(const Json& json) {
  std::vector<Exchange> all;
  for (const Json& one : json) {
    Exchange exchange{one.at("from"), one.at("to"), one.at("bytes"), one.at("wrong_bits")};
    if (exchange.wrong_bits > 0) exchange.first_wrong = one.at("first_wrong_byte");
    all.push_back(exchange);
  }
  return all;
}

std::vector<Exchange> exchange_data(Communicator& gpus, Backend& backend, Communicator& world, Stream& host) {
  const std::int64_t largest = *std::max_element(std::begin(message_words), std::end(message_words));
  Device device{gpus, backend, backend.allocate(4 * largest), backend.compute_stream()};
  std::vector<Exchange> received, all;
  for (int round = 0; gpus.size() > 1 && round < rounds_of(gpus.size()); ++round) {
    const int other = opponent(gpus.rank(), round, gpus.size());
    if (other < gpus.size()) {
      for (const Exchange& one : exchange_with(device, other)) received.push_back(one);
    }
    world.barrier(host);
    host.synchronize();
  }
  for (const std::string& text : gather_texts(json_text(to_json(received)), world, host)) {
    for (const Exchange& one : exchanges_in(parse_json(text))) all.push_back(one);
  }
  std::stable_sort(all.begin(), all.end(), [](const Exchange& a, const Exchange& b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  });
  return all;
}

std::vector<Problem> problems_of(const std::vector<Exchange>& exchanges, const std::vector<std::string>& hosts) {
  std::vector<Problem> problems;
  for (const Exchange& one : exchanges) {
    if (one.wrong_bits == 0) continue;
    const std::string &from = hosts[static_cast<std::size_t>(one.from)], &to = hosts[static_cast<std::size_t>(one.to)];
    problems.push_back(
        {true, from == to ? from : format("{} and {}", from, to),
         format(
             "data that the GPU of rank {} sends to that of rank {} is corrupted: {} of {} bits are wrong, the first "
             "in byte {}",
             one.from, one.to, one.wrong_bits, 8 * one.bytes, one.first_wrong),
         "set NCCL_P2P_DISABLE=1, so that the data goes through the host's memory, and run `trainctl doctor --gpus` "
         "again; boards without working peer access need this, or another setting of the IOMMU and of ACS"});
  }
  return problems;
}

}  // namespace trainctl
