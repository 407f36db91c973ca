// RequestReader: takes the head of one HTTP/1.0 or 1.1 request apart as its bytes come, bounded before
// anything is allocated. It is the only thing that sees a stranger's bytes on the admin address. A request
// with a body is refused: none of the pages takes one. Not thread-safe; no clock, no socket.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "core/result.h"
#include "server/admin/http.h"

namespace fedge::server {

// Request line and header fields together, in bytes.
inline constexpr std::size_t kMaxRequestHead = 16 << 10;

class RequestReader {
 public:
  RequestReader();
  ~RequestReader();
  RequestReader(RequestReader&&) noexcept;
  RequestReader& operator=(RequestReader&&) noexcept;

  // Looks at the bytes that have come since the last request's end, all of them each time, and says how
  // many of them the request takes: 0 until it is whole. kInvalid for what is no request or has a body,
  // kResource for a head above kMaxRequestHead, kUnsupported for another version of HTTP; after an error
  // the reader is of no more use.
  Result<std::size_t> take(std::string_view bytes);
  // Of the request that take() has found whole; the reader is then ready for the next one.
  HttpRequest request();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fedge::server
