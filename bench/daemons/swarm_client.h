// SwarmClient: one of thousands of clients in a process. It has a key of its own and does what a real
// client does on its link: TLS handshake, Hello, RunAnswer, Pong for Ping; work that it is given it
// declines. Below protocol::Link, so that a Ping can be sent and its Pong timed. One thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "protocol/messages.h"
#include "protocol/session/detail/handshake.h"
#include "protocol/session/endpoint.h"
#include "protocol/session/frame_reader.h"

namespace fedge::bench {

using Clock = std::chrono::steady_clock;

// What all clients of the process have in common, and what they report to.
struct Swarm {
  boost::asio::io_context& io;
  protocol::Address address{};
  PublicKey coordinator{};
  std::function<void(std::size_t client)> on_ready{};  // has said that it takes part in the run
  std::function<void(std::size_t client, Clock::duration)> on_pong{};
  std::function<void(std::size_t client)> on_work{};  // a TrainRequest has come
  std::function<void(std::size_t client, const std::string& why)> on_gone{};
  std::function<boost::asio::ip::address()> source{};  // whence to connect; without it, as the system likes
};

// The same in every process, so that enrolment and connecting need no file between them.
SecretKey key_of(std::size_t client);

class SwarmClient : public std::enable_shared_from_this<SwarmClient> {
 public:
  SwarmClient(Swarm& swarm, std::size_t number) : swarm_(swarm), number_(number), socket_(swarm.io) {}

  void start();
  void ping();
  void send(const std::string& frame);
  // Answers the TrainRequest it has.
  void decline();
  void leave();

 private:
  void greet();
  void wait_readable();
  void read();
  Result<void> take_frame();
  Result<void> take(const protocol::Message& message);
  void write();
  void gone(const std::string& why);

  Swarm& swarm_;
  std::size_t number_;
  boost::asio::ip::tcp::socket socket_;  // until the handshake
  std::optional<protocol::TlsStream> stream_;
  protocol::FrameReader reader_;
  std::string out_;
  bool waiting_writable_ = false;
  std::optional<Clock::time_point> pinged_;
  std::optional<protocol::TaskFailed> answer_;
};

}  // namespace fedge::bench
