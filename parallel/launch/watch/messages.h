// The messages between the supervisor and the agents on its hosts: lines of JSON.
//
// The supervisor writes requests to the agent's standard input. The agent writes lines to its standard output that
// begin with a mark, a random word that the supervisor chooses, since login scripts may print there, too. All other
// lines are ignored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/launch/watch/process_place.h"
#include "parallel/launch/watch/rank_view.h"

namespace trainctl {

inline constexpr int watch_version = 1;                        // of these messages
inline constexpr std::size_t longest_watch_line = 256 * 1024;  // bytes; a longer line is dropped
inline constexpr std::size_t piece_of_file = 64 * 1024;        // bytes of a file in one message

// A request to an agent.
struct WatchRequest {
  enum class Kind {
    alive,   // the supervisor runs; renews the agent's lease
    pause,   // the user suspends the supervisor: the lease does not end before the next message
    places,  // report what the processes of the ranks do
    files,   // send the flight records
    end,     // the attempt is over
  };
  Kind kind = Kind::alive;

  bool operator==(const WatchRequest&) const = default;
};

// What the process of a rank does.
struct RankPlace {
  int rank = 0;
  ProcessPlace place = {};

  bool operator==(const RankPlace&) const = default;
};

// A message of an agent.
struct WatchNews {
  enum class Kind {
    hello,   // the first message: the agent's version of the messages
    ranks,   // the ranks that have changed; also says that the agent runs
    places,  // the answer to `places`, in one or more messages, the last of which has `last`
    file,    // a piece of a flight record
    files,   // all records were sent
  };
  Kind kind = Kind::ranks;
  int version = 0;
  std::vector<RankView> ranks = {};
  std::vector<RankPlace> places = {};
  bool last = false;
  std::string file_name = {};
  std::string bytes = {};  // appended to the file
};

// Return a message as a line, with its line end.
std::string to_line(const WatchRequest& request);
std::string to_line(const WatchNews& news, std::string_view mark);

// Read a line without its line end. Empty if the line is no such message; also for values that no agent sends, such as
// a negative rank or a file name with a slash.
std::optional<WatchRequest> read_request(std::string_view line);
std::optional<WatchNews> read_news(std::string_view line, std::string_view mark);

// Splits bytes that arrive in pieces into lines. A line longer than longest_watch_line is dropped.
class LineReader {
 public:
  // Adds bytes and returns the lines that they complete.
  std::vector<std::string> add(std::string_view bytes);

 private:
  std::string line_;
  bool too_long_ = false;
};

}  // namespace trainctl
