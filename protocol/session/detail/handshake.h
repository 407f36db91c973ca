// Handshake: performs a TLS handshake on a connected socket within a time limit. Private to session/.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>

#include "core/result.h"
#include "protocol/session/detail/tls.h"

namespace fedge::protocol {

// Runs one handshake step at a time, then lets other events of the thread run. A step takes about a
// millisecond for its signatures, and a hundred simultaneous strangers must not delay admitted clients.
class StepQueue : public std::enable_shared_from_this<StepQueue> {
 public:
  explicit StepQueue(boost::asio::io_context& io) : io_(io) {}
  void add(std::function<void()> step);

 private:
  void run_one();
  boost::asio::io_context& io_;
  std::deque<std::function<void()>> steps_;
};

class Handshake : public std::enable_shared_from_this<Handshake> {
 public:
  using Done = std::function<void(Result<TlsStream>)>;

  // With a queue, the handshake's steps wait there.
  explicit Handshake(TlsStream stream, std::shared_ptr<StepQueue> queue = nullptr)
      : stream_(std::move(stream)), timer_(stream_.socket().get_executor()), queue_(std::move(queue)) {}

  // Calls `done` once, after this call has returned.
  void start(std::chrono::steady_clock::duration time_limit, Done done);
  // Ends the handshake with this error, unless it has ended.
  void abort(const Error& error);

 private:
  void step_in_turn();
  void step();
  void finish(Result<TlsStream> result);

  TlsStream stream_;
  boost::asio::steady_timer timer_;
  std::shared_ptr<StepQueue> queue_;
  Done done_;
};

}  // namespace fedge::protocol
