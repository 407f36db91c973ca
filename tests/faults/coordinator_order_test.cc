// In which order a coordinator asks the system to make things durable, as strace sees it: what a power cut
// may take away is what has not been synced.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/faults/whole_run.h"

using namespace fedge;
using test::Setting;
using test::WholeRun;

namespace {

struct Call {
  std::string name;
  std::string path;       // that it syncs, or renames
  std::string to;         // its new name
  std::size_t begin = 0;  // lines of the trace
  std::size_t end = 0;
};

// The calls that succeeded. One that another thread's interrupts has two lines.
std::vector<Call> calls_of(const std::string& trace) {
  static const std::regex line(R"(^(\d+) +(\w+)\((.*)$)");
  static const std::regex resumed(R"(^(\d+) +<\.\.\. \w+ resumed>.*= 0$)");
  static const std::regex synced(R"(^\d+<([^>]*)>.*)");
  static const std::regex renamed(R"re(^"([^"]*)", "([^"]*)".*)re");
  std::vector<Call> calls;
  std::map<std::string, Call> open;  // by thread
  std::istringstream lines(trace);
  std::size_t number = 0;
  for (std::string text; std::getline(lines, text); ++number) {
    std::smatch match;
    if (std::regex_match(text, match, resumed)) {
      if (const auto begun = open.find(match[1]); begun != open.end()) {
        begun->second.end = number;
        calls.push_back(begun->second);
        open.erase(begun);
      }
    } else if (std::regex_match(text, match, line)) {
      Call call{match[2], {}, {}, number, number};
      const std::string thread = match[1];
      const std::string arguments = match[3];
      std::smatch parts;
      if (std::regex_match(arguments, parts, call.name == "rename" ? renamed : synced)) {
        call.path = parts[1];
        if (parts.size() > 2) call.to = parts[2];
      }
      if (arguments.find("<unfinished") != std::string::npos)
        open[thread] = call;
      else if (arguments.ends_with("= 0"))
        calls.push_back(call);
    }
  }
  return calls;
}

bool is_sync(const Call& call, const std::string& path) {
  return (call.name == "fsync" || call.name == "fdatasync") && call.path == path;
}

}  // namespace

TEST_CASE(
    "power: no file gets its name before its bytes are durable, and the name is made durable, N2, rows 3 and "
    "4") {
  if (!test::strace_works()) return;
  WholeRun whole({"fedavg", "", 2, 2});
  const auto trace = whole.log_of("trace");
  whole.begin({"strace", "-f", "-qq", "-y", "-s", "4096", "-o", trace.string(), "-e",
               "trace=rename,fsync,fdatasync"});
  REQUIRE_MESSAGE(whole.server->wait() == 0, whole.server_log());
  const auto text = read_file(trace, 64 << 20);
  REQUIRE(text);
  const std::vector<Call> calls = calls_of(*text);
  std::size_t renames = 0;
  for (const Call& call : calls) {
    if (call.name != "rename") continue;
    ++renames;
    CAPTURE(call.path);
    CAPTURE(call.to);
    const std::string folder = std::filesystem::path(call.to).parent_path().string();
    CHECK(std::ranges::any_of(
        calls, [&](const Call& other) { return is_sync(other, call.path) && other.end < call.begin; }));
    CHECK(std::ranges::any_of(
        calls, [&](const Call& other) { return is_sync(other, folder) && other.begin > call.end; }));
  }
  // The key, the address, the book for each client, and the results' files at least.
  CHECK(renames >= 5);
}
