// Parses NCCL's log, line by line. A line has a prefix of host, process and GPU, then "NCCL INFO", then one of the
// forms below.
#include "parallel/health/doctor/nccl/log.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>

namespace trainctl {
namespace {

// Reads a text from its beginning. Each function returns false, and leaves the text as it is, if the text begins
// otherwise.
class LogReader {
 public:
  explicit LogReader(std::string_view text) : rest_(text) {}

  std::string_view rest() const { return rest_; }

  bool skip(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  // Skips all text up to and including `expected`.
  bool skip_past(std::string_view expected) {
    const std::size_t at = rest_.find(expected);
    if (at == std::string_view::npos) return false;
    rest_.remove_prefix(at + expected.size());
    return true;
  }
  bool read(int& number) {
    int value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || value < 0) return false;
    number = value;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }
  // Reads up to the first of the characters `ends`, which is not skipped, or to the end.
  std::string_view word(std::string_view ends) {
    const std::string_view found = rest_.substr(0, rest_.find_first_of(ends));
    rest_.remove_prefix(found.size());
    return found;
  }

 private:
  std::string_view rest_;
};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Parses "NET/IB/0(3)/GDRDMA/Shared": the name, which may contain spaces, the device, another rank that sends for this
// one, and properties.
bool parse_network(std::string_view via, NcclConnection& connection) {
  LogReader reader(via);
  if (!reader.skip("NET/")) return false;
  connection.network = reader.word("/");
  if (connection.network.empty() || !reader.skip("/") || !reader.read(connection.device)) return false;
  connection.gpudirect = reader.rest().find("/GDRDMA") != std::string_view::npos;
  return true;
}

// Parses "0[0] -> 1[1] [send] via SHM/direct/direct". The brackets after a rank contain the number or the bus of its
// GPU.
bool parse_connection(LogReader reader, NcclConnection& connection) {
  const auto read_rank = [&reader](int& rank) {
    if (!reader.read(rank)) return false;
    return !reader.skip("[") || reader.skip_past("]");
  };
  if (!read_rank(connection.from) || !reader.skip(" -> ") || !read_rank(connection.to)) return false;
  connection.of_receiver = reader.skip(" [receive]");
  if (!connection.of_receiver) reader.skip(" [send]");
  if (!reader.skip(" via ")) return false;
  const std::string_view via = trimmed(reader.rest().substr(0, reader.rest().find(" comm ")));
  connection.via = via;
  if (via.starts_with("P2P/")) {
    connection.transport = NcclTransport::peer;
  } else if (via.starts_with("SHM")) {
    connection.transport = NcclTransport::host_memory;
  } else if (parse_network(via, connection)) {
    connection.transport = NcclTransport::network;
  }
  return !via.empty();
}

// Parses "mlx5_0:1/IB" or "eth0:10.0.0.5<0>".
NcclDevice parse_device(std::string_view network, int number, std::string_view text) {
  NcclDevice device{std::string(network), number, {}, {}};
  LogReader reader(text);
  device.name = reader.word(":");
  int port = 0;
  if (reader.skip(":") && reader.read(port) && reader.skip("/")) device.link = reader.word("/, }");
  return device;
}

void add_device(NcclDevice device, std::vector<NcclDevice>& devices) {
  const auto known = std::find_if(devices.begin(), devices.end(), [&device](const NcclDevice& other) {
    return other.network == device.network && other.number == device.number;
  });
  if (known == devices.end()) {
    devices.push_back(std::move(device));
  } else if (known->link.empty() || !device.link.empty()) {
    *known = std::move(device);
  } else {
    known->name = device.name;
  }
}

// Parses "[0]mlx5_0:1/IB [1]={[1] mlx5_1:1/IB, [2] mlx5_2:1/IB} [RO]; OOB eth0:10.0.0.1<0>". Braces contain the cards
// that NCCL uses as one device.
void parse_devices(std::string_view network, LogReader reader, std::vector<NcclDevice>& devices) {
  for (int number = 0; reader.skip_past("[");) {
    if (!reader.read(number) || !reader.skip("]")) continue;
    if (!reader.skip("={")) {
      add_device(parse_device(network, number, reader.word(" ")), devices);
      continue;
    }
    NcclDevice all{std::string(network), number, {}, {}};
    LogReader members(reader.word("}"));
    while (members.skip_past("] ")) {
      const NcclDevice member = parse_device(network, number, members.word(","));
      all.name += (all.name.empty() ? "" : "+") + member.name;
      all.link = member.link;
    }
    if (!all.name.empty()) add_device(std::move(all), devices);
  }
}

// Parses "NET/IB : Using ...", "NET/IB : Made virtual device [2] name=mlx5_0+mlx5_1 speed=800000 ndevs=2" and "NET/IB :
// GPU Direct RDMA Disabled for HCA 0 'mlx5_0'".
void parse_network_line(LogReader reader, NcclLog& log) {
  const std::string_view network = trimmed(reader.word(":"));
  if (network.empty() || !reader.skip(":")) return;
  LogReader made = reader;
  int number = 0;
  if (reader.skip(" GPU Direct RDMA ")) {
    log.gpudirect = log.gpudirect.value_or(false) || reader.rest().starts_with("Enabled");
  } else if (reader.skip(" Using ")) {
    parse_devices(network, reader, log.devices);
  } else if (made.skip(" Made virtual device [") && made.read(number) && made.skip("] name=")) {
    add_device({std::string(network), number, std::string(made.word(" ")), {}}, log.devices);
  }
}

// Parses "NCCL_P2P_DISABLE set by environment to 1." and "NCCL_IB_HCA set to mlx5".
void parse_variable(std::string_view body, NcclLog& log) {
  LogReader reader(body);
  const std::string_view name = reader.word(" ");
  if (!name.starts_with("NCCL_") || !(reader.skip(" set by environment to ") || reader.skip(" set to "))) return;
  std::string_view value = trimmed(reader.rest());
  if (value.ends_with('.')) value.remove_suffix(1);
  log.variables[std::string(name)] = value;
}

using SeenChannels = std::set<std::tuple<int, int, bool, std::string, std::string>>;

void parse_channel(LogReader reader, NcclLog& log, SeenChannels& seen) {
  const std::string channel(trimmed(reader.word(":")));
  NcclConnection connection;
  if (channel.empty() || !reader.skip(": ") || !parse_connection(reader, connection)) return;
  if (!seen.emplace(connection.from, connection.to, connection.of_receiver, connection.via, channel).second) return;
  const auto known =
      std::find_if(log.connections.begin(), log.connections.end(), [&connection](const NcclConnection& other) {
        return other.from == connection.from && other.to == connection.to &&
               other.of_receiver == connection.of_receiver && other.via == connection.via;
      });
  if (known != log.connections.end()) {
    ++known->channels;
    return;
  }
  connection.channels = 1;
  log.connections.push_back(std::move(connection));
}

void parse_body(std::string_view body, NcclLog& log, SeenChannels& seen) {
  LogReader reader(body);
  if (reader.skip("Channel ")) {
    parse_channel(reader, log, seen);
  } else if (reader.skip("Using network ")) {
    log.network = trimmed(reader.rest());
  } else if (reader.skip("NET/")) {
    parse_network_line(reader, log);
  } else if (reader.skip("NVLS multicast support is ")) {
    log.multicast = reader.rest().starts_with("available");
  } else if (reader.skip("DMA-BUF is available on GPU device")) {
    log.dma_buf = true;
  } else if (reader.skip("GPU Direct RDMA Disabled for GPU ")) {
    log.gpudirect_too_far = true;
  } else {
    parse_variable(body, log);
  }
}

}  // namespace

const NcclDevice* NcclLog::device_of(const NcclConnection& connection) const {
  if (connection.transport != NcclTransport::network) return nullptr;
  const auto found = std::find_if(devices.begin(), devices.end(), [&connection](const NcclDevice& device) {
    return device.number == connection.device && is_same_nccl_network(device.network, connection.network);
  });
  return found == devices.end() ? nullptr : &*found;
}

NcclLog parse_nccl_log(std::string_view text) {
  NcclLog log;
  SeenChannels seen;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    LogReader line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    LogReader version = line;
    if (version.skip_past("NCCL version ")) {
      log.version = version.word(" \r");
    } else if (line.skip_past("NCCL INFO ")) {
      parse_body(trimmed(line.rest()), log, seen);
    }
  }
  return log;
}

bool is_same_nccl_network(std::string_view one, std::string_view other) {
  return one == other || (one.starts_with("IB") && other.starts_with("IB"));
}

}  // namespace trainctl
