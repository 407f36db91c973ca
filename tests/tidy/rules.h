// The house rules as tables: the rooms, what each may include, and what only shells may use.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

namespace fedge::tidy {

struct Room {
  std::string_view name;
  std::vector<std::string_view> may_include;  // besides itself
  bool decisions;                             // contains decisions: no sockets, databases or overlay networks
  bool shell;                                 // may read clocks, start threads and read the environment
};

inline const std::vector<Room>& rooms() {
  static const std::vector<Room> table = {
      {"core", {}, true, false},
      {"protocol", {"core"}, false, false},
      {"aggregation", {"core", "protocol"}, true, false},
      {"privacy", {"core", "protocol"}, true, false},
      {"learn", {"core", "protocol"}, true, false},
      {"dht", {"core", "protocol"}, false, false},
      {"swarm", {"core", "protocol"}, true, false},
      {"run", {"core", "protocol", "aggregation", "privacy", "learn", "swarm"}, true, false},
      {"server", {"core", "protocol", "aggregation", "privacy", "learn", "run", "dht", "swarm"}, false, true},
      {"client", {"core", "protocol", "aggregation", "privacy", "learn", "run", "dht", "swarm"}, false, true},
      {"sim",
       {"core", "protocol", "aggregation", "privacy", "learn", "run", "dht", "swarm", "server", "client"},
       false,
       true},
      {"lab",
       {"core", "protocol", "aggregation", "privacy", "learn", "run", "dht", "swarm", "server", "client",
        "sim"},
       false,
       true},
      {"apps",
       {"core", "protocol", "aggregation", "privacy", "learn", "run", "dht", "swarm", "server", "client",
        "sim", "lab"},
       false,
       true},
  };
  return table;
}

// Folders that are not rooms but have the same README and style; they may include everything.
inline constexpr std::array<std::string_view, 2> kOtherFolders = {"tests", "bench"};

// Headers that rooms of decisions may not include: sockets, overlay networks, databases.
inline constexpr std::array<std::string_view, 6> kShellHeaders = {"boost/",  "asio",       "opendht",
                                                                  "sqlite3", "SQLiteCpp/", "pqxx"};

// Words that only shells may use. "()" behind a word restricts the rule to calls of a function of that name.
inline constexpr std::array<std::string_view, 18> kShellWords = {
    "steady_clock::now", "system_clock",  "high_resolution_clock",
    "random_device",     "getenv",        "secure_getenv",
    "std::thread",       "std::jthread",  "std::async",
    "sleep_for",         "sleep_until",   "pthread_create",
    "gettimeofday",      "clock_gettime", "time()",
    "clock()",           "rand()",        "srand()"};

inline constexpr std::array<std::string_view, 2> kThreadHeaders = {"thread", "future"};

struct Limits {
  static constexpr std::size_t kHeaderLines = 250;
  static constexpr std::size_t kSourceLines = 400;
  static constexpr std::size_t kTestLines = 600;
  static constexpr std::size_t kReadmeLines = 60;
  static constexpr std::size_t kFilesInFolder = 25;
  static constexpr std::size_t kMethods = 40;  // of a class, out of line
  static constexpr std::size_t kSources = 3;   // with methods of a class
};

}  // namespace fedge::tidy
