// Finds processes and their listening sockets in /proc.
#include "test/parallel/launch/listening.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace trainctl {
namespace {

namespace fs = std::filesystem;

pid_t parent_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream rest(line.substr(name_end + 1));
  char state = 0;
  pid_t parent = 0;
  rest >> state >> parent;
  return parent;
}

// The names of all open files; a socket is named "socket:[1234]".
std::set<std::string> sockets_of(const std::vector<pid_t>& processes) {
  std::set<std::string> sockets;
  std::error_code ignored;
  for (pid_t process : processes) {
    for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(process) + "/fd", ignored)) {
      sockets.insert(fs::read_symlink(entry.path(), ignored).string());
    }
  }
  return sockets;
}

}  // namespace

std::vector<pid_t> family_of(pid_t ancestor) {
  std::vector<pid_t> family = {ancestor};
  for (std::size_t i = 0; i < family.size(); ++i) {
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") == std::string::npos && parent_of(name) == family[i]) {
        family.push_back(std::stoi(name));
      }
    }
  }
  return family;
}

std::vector<std::string> listening_addresses(const std::vector<pid_t>& processes) {
  const std::set<std::string> sockets = sockets_of(processes);
  std::vector<std::string> addresses;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);  // the header line
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::string number, local, remote, state, queues, timer, retransmitted, user, timeout, inode;
      words >> number >> local >> remote >> state >> queues >> timer >> retransmitted >> user >> timeout >> inode;
      constexpr const char* listening = "0A";
      if (state == listening && sockets.contains("socket:[" + inode + "]")) {
        addresses.push_back(local.substr(0, local.find(':')));
      }
    }
  }
  return addresses;
}

bool is_loopback(const std::string& address) {
  return address.size() == 8 ? address.ends_with("7F") : address == "00000000000000000000000001000000";
}

}  // namespace trainctl
