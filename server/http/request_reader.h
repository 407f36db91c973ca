// RequestReader parses the head of an HTTP/1.0 or 1.1 request from bytes as they arrive. Its size limit
// applies before anything is allocated. It is the only parser of untrusted bytes on the HTTP addresses. The
// head announces the size of a body, which the caller reads; a chunked body is refused. Not thread-safe; uses
// no clock and no socket.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "core/result.h"
#include "server/http/http.h"

namespace fedge::server {

// Maximum bytes of the request line and header fields together.
inline constexpr std::size_t kMaxRequestHead = 16 << 10;

class RequestReader {
 public:
  RequestReader();
  ~RequestReader();
  RequestReader(RequestReader&&) noexcept;
  RequestReader& operator=(RequestReader&&) noexcept;

  // Parses all bytes received since the end of the last request. Returns how many of them the head occupies,
  // or 0 if it is incomplete. kInvalid: not a request; kRefused: it has a body without a length; kResource:
  // the head exceeds kMaxRequestHead; kUnsupported: another HTTP version. The reader is unusable after an
  // error.
  Result<std::size_t> take(std::string_view bytes);
  // Returns the request that take() completed, without its body, and prepares for the next one.
  HttpRequest request();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fedge::server
