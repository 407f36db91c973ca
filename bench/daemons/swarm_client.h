// SwarmClient: one of thousands of clients in a process. It has its own key and does what a real client does
// on its link: TLS handshake, Hello, RunAnswer, Pong for Ping. It declines work. It does not use
// protocol::Link, so that it can send a Ping and time its Pong. One thread.
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

// The state that all clients of the process share, and the callbacks that they report to.
struct Swarm {
  boost::asio::io_context& io;
  protocol::Address address{};
  PublicKey coordinator{};
  std::function<void(std::size_t client)> on_ready{};  // the client has said that it takes part in the run
  std::function<void(std::size_t client, Clock::duration)> on_pong{};
  std::function<void(std::size_t client)> on_work{};  // the client has received a TrainRequest
  std::function<void(std::size_t client, const std::string& why)> on_gone{};
  std::function<boost::asio::ip::address()> source{};  // the local address to connect from; unset: the system
                                                       // chooses
};

// Returns the client's key, the same in every process: enrolment and connecting need no common file.
SecretKey key_of(std::size_t client);

class SwarmClient : public std::enable_shared_from_this<SwarmClient> {
 public:
  SwarmClient(Swarm& swarm, std::size_t number) : swarm_(swarm), number_(number), socket_(swarm.io) {}

  void start();
  void ping();
  void send(const std::string& frame);
  // Declines the TrainRequest that the client holds.
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
