// Shared by the tests of log.prometheus: a client on a plain socket, and a reader of the exposition format.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>

namespace trainctl::test {

inline sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A free port of the loopback interface.
inline int free_port() {
  const int probe = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(probe, any, size) != 0 || getsockname(probe, any, &size) != 0) throw std::runtime_error("no port");
  close(probe);
  return ntohs(address.sin_port);
}

// Returns a connected socket; -1 if nobody listens.
inline int connect_to(int port) {
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = loopback(port);
  if (connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return client;
  close(client);
  return -1;
}

inline bool is_listened_on(int port) {
  const int client = connect_to(port);
  if (client >= 0) close(client);
  return client >= 0;
}

// Everything that is received until the other side closes the connection.
inline std::string received(int client) {
  std::string text;
  char bytes[4096];
  for (ssize_t got; (got = recv(client, bytes, sizeof bytes, 0)) > 0;)
    text.append(bytes, static_cast<std::size_t>(got));
  return text;
}

// The answer to a request; "" if nobody listens.
inline std::string answer_to(int port, const std::string& request) {
  const int client = connect_to(port);
  if (client < 0) return "";
  std::string text;
  if (send(client, request.data(), request.size(), MSG_NOSIGNAL) >= 0) text = received(client);
  close(client);
  return text;
}

// The body of the answer to GET /metrics; "" if nobody listens.
inline std::string scrape(int port) {
  const std::string answer = answer_to(port, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::size_t body = answer.find("\r\n\r\n");
  return body == std::string::npos ? "" : answer.substr(body + 4);
}

// The samples by name and labels as they are written, such as trainctl_gpu_power_watts{rank="0"}. Throws if the text
// breaks a rule of the format: HELP, then TYPE, then all samples of the family, each once; names of counters end in
// _total.
inline std::map<std::string, double> samples_of(const std::string& text) {
  static const std::regex help("# HELP ([a-z_:][a-z0-9_:]*) (\\S.*)"), type("# TYPE (\\S+) (counter|gauge)"),
      sample(R"(([a-z_:][a-z0-9_:]*)(\{[a-z_]+="([^"\\]|\\["\\n])*"(,[a-z_]+="([^"\\]|\\["\\n])*")*\})? (\S+))");
  std::map<std::string, double> samples;
  std::set<std::string> families;
  std::string family, awaits_type;
  std::istringstream lines(text);
  const auto require = [](bool good, const std::string& line) {
    if (!good) throw std::runtime_error("no exposition text: " + line);
  };
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_match(line, found, help)) {
      awaits_type = found[1];
      require(families.insert(awaits_type).second, line);
    } else if (std::regex_match(line, found, type)) {
      require(found[1] == awaits_type, line);
      family = awaits_type;
      require((found[2] == "counter") == family.ends_with("_total"), line);
    } else {
      require(std::regex_match(line, found, sample) && found[1] == family, line);
      const std::string value = found[6];
      require(samples.emplace(found[1].str() + found[2].str(), std::stod(value)).second, line);
    }
  }
  require(text.empty() || text.ends_with('\n'), "the end");
  return samples;
}

}  // namespace trainctl::test
