// Fuzz target of the admin pages' request reader: a connection's bytes with consecutive requests, whole and
// in pieces. The result must not depend on the pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "server/http/request_reader.h"

namespace fedge::fuzz {

struct TakenRequests {
  std::vector<std::string> lines;  // method, target, and whether the connection stays open
  std::string error;
  bool operator==(const TakenRequests&) const = default;
};

// Reads as a connection would: `at_once` more bytes arrive whenever no request is complete.
inline TakenRequests take_requests(std::string_view bytes, std::size_t at_once) {
  TakenRequests taken;
  server::RequestReader reader;
  std::size_t begin = 0;
  std::size_t end = 0;
  while (taken.error.empty()) {
    const auto size = reader.take(bytes.substr(begin, end - begin));
    if (!size) {
      taken.error = size.error().message;
      FEDGE_CHECK(!taken.error.empty(), "an error says what is wrong");
    } else if (*size > 0) {
      FEDGE_CHECK(*size <= end - begin && *size <= server::kMaxRequestHead, "more is taken than came");
      FEDGE_CHECK(bytes.substr(begin, *size).ends_with("\r\n\r\n"), "a request ends within a line");
      const server::HttpRequest request = reader.request();
      taken.lines.push_back(request.method + " " + request.target + (request.keep_alive ? " +" : " -"));
      FEDGE_CHECK(taken.lines.back().find_first_of("\r\n") == std::string::npos, "a target has a line end");
      FEDGE_CHECK(!request.method.empty() && !request.path().empty(), "a request without method or path");
      for (const auto& [name, value] : request.fields)
        FEDGE_CHECK((name + value).find_first_of("\r\n") == std::string::npos, "a field has a line end");
      begin += *size;
      // The body, as far as it has arrived.
      const std::size_t body = std::min<std::uint64_t>(request.announced_body, bytes.size() - begin);
      begin += body;
      end = std::max(begin, end);
    } else {
      if (end == bytes.size()) return taken;
      FEDGE_CHECK(end - begin <= server::kMaxRequestHead, "a head without an end is kept");
      end += std::min(at_once, bytes.size() - end);
    }
  }
  return taken;
}

// Byte 0: the number of bytes that arrive at once, minus one.
inline void feed_http(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const std::size_t at_once = static_cast<std::size_t>(bytes[0]) + 1;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 1, bytes.size() - 1);
  const TakenRequests pieces = take_requests(text, at_once);
  FEDGE_CHECK(pieces == take_requests(text, server::kMaxRequestHead), "pieces are read in another way");
}

}  // namespace fedge::fuzz
