// A program's system calls as strace saw them: which call began and ended before which other. The proofs use
// only the order, never times. Calls are numbered by the lines of the trace.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "core/platform/files.h"

namespace fedge::test {

struct SystemCall {
  std::string thread;
  std::string name;
  std::string file;                // of the descriptor passed in, or returned by openat()
  std::vector<std::string> paths;  // paths passed as text
  std::string flags;               // of openat()
  std::size_t offset = 0;          // of pwrite64()
  std::size_t begin = 0;
  std::size_t end = 0;

  bool is_sync() const { return name == "fsync" || name == "fdatasync"; }
  bool is_write() const { return name == "write" || name == "pwrite64"; }
  bool is_rename() const { return name == "rename" || name == "link"; }
  bool is_send() const { return file.starts_with("socket:") || file.starts_with("TCP:"); }
  bool may_create() const { return name == "openat" && flags.find("O_CREAT") != std::string::npos; }
};

// Returns the prefix of a command that traces disk writes and messages to peers, with the file of each
// descriptor. Every fdatasync is delayed, so that a program that does not wait for it is detected.
inline std::vector<std::string> strace_into(const std::filesystem::path& trace) {
  return {"strace", "-f",
          "-qq",    "-y",
          "-s",     "0",
          "-o",     trace.string(),
          "-e",     "trace=openat,write,pwrite64,fsync,fdatasync,rename,link,sendto,sendmsg",
          "-e",     "inject=fdatasync:delay_enter=20ms"};
}

// Parses "pwrite64(5</a/b>, ""..., 8, 0) = 8", without the process id; none if the call failed.
inline std::optional<SystemCall> parse_call(const std::string& text) {
  SystemCall call;
  const std::size_t open = text.find('(');
  const std::size_t result = text.rfind(" = ");
  if (open == std::string::npos || result == std::string::npos || result + 3 >= text.size()) return {};
  if (text[result + 3] == '-' || text[result + 3] == '?') return {};
  call.name = text.substr(0, open);
  const std::size_t described = call.name == "openat" ? result : open;
  const std::size_t from = text.find('<', described);
  if (const std::size_t to = text.rfind('>', described == open ? result : text.size());
      from != std::string::npos && to != std::string::npos && from < to)
    call.file = text.substr(from + 1, std::min(to, text.find('>', from)) - from - 1);
  for (std::size_t at = text.find('"', open); at < result; at = text.find('"', at + 1)) {
    const std::size_t closing = text.find('"', at + 1);
    call.paths.push_back(text.substr(at + 1, closing - at - 1));
    at = closing;
  }
  if (call.name == "openat") call.flags = text.substr(text.rfind('"', result));
  if (call.name == "pwrite64") call.offset = std::stoull(text.substr(text.rfind(',', result) + 2));
  return call;
}

class Trace {
 public:
  // Reads the trace of a program that has ended. A call that another thread's call interrupted has two lines.
  explicit Trace(const std::filesystem::path& file) {
    const auto text = read_file(file, 64 << 20);
    REQUIRE_MESSAGE(text, text.error().message);
    std::istringstream lines(*text);
    std::map<std::string, std::pair<std::size_t, std::string>> unfinished;  // by thread
    std::size_t number = 0;
    for (std::string line; std::getline(lines, line); ++number) {
      const std::size_t space = line.find(' ');
      const std::string thread = line.substr(0, space);
      std::string rest = line.substr(line.find_first_not_of(' ', space));
      std::size_t begin = number;
      if (const std::size_t cut = rest.find(" <unfinished ...>"); cut != std::string::npos) {
        unfinished[thread] = {number, rest.substr(0, cut)};
        continue;
      }
      if (rest.starts_with("<... ")) {
        const auto& [since, first] = unfinished.at(thread);
        begin = since;
        rest = first + rest.substr(rest.find("resumed>") + 8);
      }
      auto call = parse_call(rest);
      if (!call) continue;
      call->thread = thread;
      call->begin = begin;
      call->end = number;
      calls_.push_back(std::move(*call));
    }
    std::ranges::stable_sort(calls_, {}, &SystemCall::begin);
    REQUIRE_FALSE(calls_.empty());
  }

  const std::vector<SystemCall>& calls() const { return calls_; }

  // Returns the first matching call that begins after the line `after`.
  template <class Predicate>
  const SystemCall* first(std::size_t after, const Predicate& wanted) const {
    const auto found = std::ranges::find_if(
        calls_, [&](const SystemCall& call) { return call.begin > after && wanted(call); });
    return found == calls_.end() ? nullptr : &*found;
  }
  // Returns the last matching call that ends before the line `before`.
  template <class Predicate>
  const SystemCall* last(std::size_t before, const Predicate& wanted) const {
    const SystemCall* found = nullptr;
    for (const SystemCall& call : calls_)
      if (call.end < before && wanted(call)) found = &call;
    return found;
  }
  const SystemCall* first_sync(const std::string& file, std::size_t after) const {
    return first(after, [&](const SystemCall& call) { return call.is_sync() && call.file == file; });
  }
  const SystemCall* first_send(std::size_t after) const {
    return first(after, [](const SystemCall& call) { return call.is_send(); });
  }
  // Returns whether the file's content at the end of this write, and its name, were durable before the line.
  bool durable(const SystemCall& write, std::size_t before) const {
    const SystemCall* bytes = first_sync(write.file, write.end);
    return bytes != nullptr && bytes->end < before && linked(write.file, before);
  }
  bool linked(const std::string& file, std::size_t before) const {
    const auto* made =
        first(0, [&](const SystemCall& call) { return call.may_create() && call.file == file; });
    if (made == nullptr) return false;
    const SystemCall* name = first_sync(std::filesystem::path(file).parent_path(), made->end);
    return name != nullptr && name->end < before;
  }

 private:
  std::vector<SystemCall> calls_;
};

}  // namespace fedge::test
