// Handshake: carries a TLS handshake through on a connected socket, within a time limit. Private to
// session/.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "core/result.h"
#include "protocol/session/detail/tls.h"

namespace fedge::protocol {

class Handshake : public std::enable_shared_from_this<Handshake> {
 public:
  using Done = std::function<void(Result<TlsStream>)>;

  explicit Handshake(TlsStream stream)
      : stream_(std::move(stream)), timer_(stream_.socket().get_executor()) {}

  // Calls done once, later than this call.
  void start(std::chrono::steady_clock::duration time_limit, Done done);
  // Ends it with this error, unless it has ended.
  void abort(const Error& error);

 private:
  void step();
  void finish(Result<TlsStream> result);

  TlsStream stream_;
  boost::asio::steady_timer timer_;
  Done done_;
};

}  // namespace fedge::protocol
