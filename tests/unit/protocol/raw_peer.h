// A peer that breaks the protocol at will: it speaks correct TLS and sends any bytes a test wants.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "protocol/codec.h"
#include "protocol/frame.h"
#include "protocol/session/detail/tls.h"
#include "tests/unit/protocol/link_fixture.h"

namespace fedge::protocol {

class RawPeer {
 public:
  RawPeer(Loopback& net, const SecretKey& key, boost::asio::ip::tcp::socket socket)
      : stream_(
            TlsStream::connecting(std::move(socket), *make_tls_identity(key), net.server_key.public_key())) {}
  RawPeer(Loopback& net, const SecretKey& key) : RawPeer(net, key, connected(net)) {}
  explicit RawPeer(Loopback& net) : RawPeer(net, net.client_key) {}
  explicit RawPeer(TlsStream stream) : stream_(std::move(stream)) {}

  static boost::asio::ip::tcp::socket connected(Loopback& net) {
    boost::asio::ip::tcp::socket socket(net.io);
    const auto address = net.listener->local_address();
    socket.connect({boost::asio::ip::make_address(address.host), address.port});
    return socket;
  }

  // Makes progress without blocking: the handshake, then writing, then reading.
  void poll() {
    if (ended_) return;
    if (!ready_) {
      const auto step = stream_.handshake();
      ready_ = step.outcome == TlsStream::Outcome::kDone;
      ended_ = step.outcome == TlsStream::Outcome::kFailed;
      if (!ready_) return;
    }
    while (!out_.empty()) {
      const auto step = stream_.write(std::as_bytes(std::span(out_)));
      if (step.outcome != TlsStream::Outcome::kDone) break;
      out_.erase(0, step.bytes);
    }
    std::byte buffer[16 << 10];
    while (reading_ && !ended_) {
      const auto step = stream_.read(buffer);
      if (step.outcome == TlsStream::Outcome::kDone)
        in_.append(reinterpret_cast<const char*>(buffer), step.bytes);
      else if (step.outcome == TlsStream::Outcome::kWantRead)
        break;
      else
        ended_ = true;
    }
  }

  // Runs until the other end has its link, the first one of this network.
  void meet(Loopback& net) {
    REQUIRE(net.run_until([&] {
      poll();
      return net.server.link != nullptr;
    }));
  }

  void write(std::string bytes) { out_ += bytes; }
  void stop_reading() { reading_ = false; }
  void go_on_reading() { reading_ = true; }
  bool ready() const { return ready_; }
  bool ended() const { return ended_; }
  bool written() const { return out_.empty(); }
  const Error& failure() const { return stream_.failure(); }
  const std::string& received() const { return in_; }
  TlsStream& stream() { return stream_; }

  // Returns the last Goodbye received, if any.
  std::optional<Goodbye> goodbye() const {
    std::optional<Goodbye> found;
    each_frame([&](MessageType type, std::span<const std::byte> header) {
      if (type == kTypeOf<Goodbye>) found = std::get<Goodbye>(*decode(type, header));
    });
    return found;
  }
  std::size_t count(MessageType wanted) const {
    std::size_t found = 0;
    each_frame([&](MessageType type, std::span<const std::byte>) { found += type == wanted ? 1 : 0; });
    return found;
  }

 private:
  void each_frame(const std::function<void(MessageType, std::span<const std::byte>)>& visit) const {
    auto rest = std::as_bytes(std::span(in_));
    while (rest.size() >= kFrameHeaderSize) {
      const auto frame = parse_frame_header(rest.first<kFrameHeaderSize>(), {});
      if (!frame || rest.size() < kFrameHeaderSize + frame->header_size + frame->payload_size) break;
      visit(frame->type, rest.subspan(kFrameHeaderSize, frame->header_size));
      rest = rest.subspan(kFrameHeaderSize + frame->header_size + frame->payload_size);
    }
  }

  TlsStream stream_;
  bool ready_ = false;
  bool ended_ = false;
  bool reading_ = true;
  std::string out_;
  std::string in_;
};

}  // namespace fedge::protocol
