#include "bench/daemons/swarm_client.h"

#include <utility>

#include "core/crypto/sha256.h"
#include "protocol/codec.h"

namespace fedge::bench {

using boost::asio::ip::tcp;
using protocol::TlsStream;

SecretKey key_of(std::size_t client) {
  return SecretKey::from_seed(sha256("swarm client " + std::to_string(client)));
}

void SwarmClient::start() {
  const tcp::endpoint coordinator(boost::asio::ip::make_address(swarm_.address.host), swarm_.address.port);
  if (swarm_.source) {
    boost::system::error_code error;
    socket_.open(tcp::v4());
    socket_.bind({swarm_.source(), 0}, error);
    if (error) return gone("cannot bind: " + error.message());
  }
  socket_.async_connect(coordinator, [self = shared_from_this()](const boost::system::error_code& error) {
    if (error) return self->gone("cannot connect: " + error.message());
    self->greet();
  });
}

void SwarmClient::greet() {
  socket_.set_option(tcp::no_delay(true));
  const auto identity = protocol::make_tls_identity(key_of(number_));
  if (!identity) return gone(identity.error().message);
  const auto handshake = std::make_shared<protocol::Handshake>(
      TlsStream::connecting(std::move(socket_), *identity, swarm_.coordinator));
  handshake->start(protocol::kHandshakeTimeout, [self = shared_from_this()](Result<TlsStream> stream) {
    if (!stream) return self->gone(stream.error().message);
    self->stream_.emplace(std::move(*stream));
    self->send(protocol::encode_frame(protocol::Hello{.features = {}, .software = "swarm", .token = {}}));
    self->read();
  });
}

void SwarmClient::wait_readable() {
  stream_->socket().async_wait(tcp::socket::wait_read,
                               [self = shared_from_this()](const boost::system::error_code& error) {
                                 if (!error && self->stream_) self->read();
                               });
}

void SwarmClient::read() {
  while (stream_) {
    const auto step = stream_->read(reader_.space());
    if (step.outcome == TlsStream::Outcome::kWantRead) return wait_readable();
    if (step.outcome != TlsStream::Outcome::kDone) return gone("the coordinator closed");
    const auto event = reader_.filled(step.bytes, {});
    if (!event) return gone(event.error().message);
    if (*event == protocol::FrameReader::Event::kMore) continue;
    if (const auto taken = take_frame(); !taken) return gone(taken.error().message);
    reader_.next();
  }
}

Result<void> SwarmClient::take_frame() {
  const protocol::MessageType type = reader_.frame().type;
  if (type == protocol::MessageType::kPing) {
    send(protocol::encode_empty_frame(protocol::MessageType::kPong));
    return {};
  }
  if (type == protocol::MessageType::kPong) {
    if (pinged_) swarm_.on_pong(number_, Clock::now() - *std::exchange(pinged_, std::nullopt));
    return {};
  }
  FEDGE_TRY(message, protocol::decode(type, reader_.header()));
  return take(message);
}

Result<void> SwarmClient::take(const protocol::Message& message) {
  if (const auto* run = std::get_if<protocol::RunDescription>(&message)) {
    send(protocol::encode_frame(protocol::RunAnswer{run->run, true, SampleCount(6), {}, {}}));
    swarm_.on_ready(number_);
  } else if (const auto* work = std::get_if<protocol::TrainRequest>(&message)) {
    answer_ = protocol::TaskFailed{.run = work->run,
                                   .round = work->round,
                                   .code = ErrorCode::kUnavailable,
                                   .reason = "this client only listens",
                                   .track = work->track};
    swarm_.on_work(number_);
  } else if (const auto* goodbye = std::get_if<protocol::Goodbye>(&message)) {
    return Error{goodbye->code, goodbye->reason};
  }
  return {};
}

void SwarmClient::ping() {
  if (!stream_) return;
  pinged_ = Clock::now();
  send(protocol::encode_empty_frame(protocol::MessageType::kPing));
}

void SwarmClient::decline() {
  if (stream_ && answer_) send(protocol::encode_frame(*std::exchange(answer_, std::nullopt)));
}

void SwarmClient::leave() {
  if (!stream_) return;
  stream_->shutdown();
  stream_.reset();
}

void SwarmClient::send(const std::string& frame) {
  out_ += frame;
  if (!waiting_writable_) write();
}

void SwarmClient::write() {
  while (stream_ && !out_.empty()) {
    const auto step = stream_->write(std::as_bytes(std::span(out_)));
    if (step.outcome == TlsStream::Outcome::kWantWrite) {
      waiting_writable_ = true;
      return stream_->socket().async_wait(tcp::socket::wait_write,
                                          [self = shared_from_this()](const boost::system::error_code&) {
                                            self->waiting_writable_ = false;
                                            self->write();
                                          });
    }
    if (step.outcome != TlsStream::Outcome::kDone) return;  // the read loop receives the error
    out_.erase(0, step.bytes);
  }
}

void SwarmClient::gone(const std::string& why) {
  stream_.reset();
  swarm_.on_gone(number_, why);
}

}  // namespace fedge::bench
