// The receiving half of LinkImpl.
#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <utility>

#include "protocol/codec.h"
#include "protocol/session/detail/link_impl.h"

namespace fedge::protocol {
namespace {

// Bytes read before other links on this thread get their turn. Each read counts as at least kSmallestRead,
// so that a peer with only tiny frames does not get a longer turn.
constexpr std::size_t kReadTurn = 1 << 20;
constexpr std::size_t kSmallestRead = 4 << 10;

}  // namespace

using boost::asio::ip::tcp;

void LinkImpl::wait_readable() {
  if (std::exchange(waiting_readable_, true)) return;
  stream_.socket().async_wait(tcp::socket::wait_read,
                              [self = shared_from_this()](const boost::system::error_code&) {
                                self->waiting_readable_ = false;
                                self->on_readable();
                              });
}

void LinkImpl::on_readable() {
  std::size_t budget = kReadTurn;
  while (budget > 0) {
    if (phase_ == Phase::kClosed) return;
    if (!read_some(budget)) break;
  }
  if (phase_ == Phase::kClosed) return;
  if (budget == 0)
    boost::asio::post(ticker_.get_executor(), [self = shared_from_this()] { self->on_readable(); });
  if (has_output() && !waiting_writable_) on_writable();
}

bool LinkImpl::read_some(std::size_t& budget) {
  std::array<std::byte, 4096> unheeded;
  const bool open = phase_ == Phase::kOpen;
  const TlsStream::Step step = stream_.read(open ? reader_.space() : std::span<std::byte>(unheeded));
  switch (step.outcome) {
    case TlsStream::Outcome::kDone:
      break;
    case TlsStream::Outcome::kWantRead:
      wait_readable();
      return false;
    case TlsStream::Outcome::kWantWrite:
      read_needs_write_ = true;
      wait_writable();
      return false;
    case TlsStream::Outcome::kClosed:
      stream_.shutdown();
      peer_gone({ErrorCode::kUnavailable, "the peer closed the connection"});
      return false;
    case TlsStream::Outcome::kFailed:
      peer_gone(stream_.failure());
      return false;
  }
  budget -= std::min(budget, std::max(step.bytes, kSmallestRead));
  if (!open) return true;
  traffic_.received += Bytes(step.bytes);
  const auto event = reader_.filled(step.bytes, authorised_ ? FrameLimits{} : kUnauthorisedLimits);
  const Result<void> taken = event ? take(*event) : Result<void>(event.error());
  if (!taken) fail(taken.error());
  return true;
}

Result<void> LinkImpl::take(FrameReader::Event event) {
  if (event == FrameReader::Event::kMore) return {};
  if (event == FrameReader::Event::kPayload) {
    FEDGE_TRY(chunk, decode_chunk(reader_.header()));
    FEDGE_TRY_VOID(transfers_.expect(chunk, reader_.frame().payload_size));
    reader_.expect_payload();
    return {};
  }
  const bool is_chunk = reader_.frame().type == MessageType::kChunk;
  FEDGE_TRY_VOID(take_frame());
  reader_.next();
  watch_.frame_ended();
  // After a chunk, send the next requests now, so that they overlap with further input. Other answers wait
  // for the end of the turn, so that a hundred pings are answered together.
  if (is_chunk && has_output() && !waiting_writable_) on_writable();
  return {};
}

Result<void> LinkImpl::take_frame() {
  const MessageType type = reader_.frame().type;
  if (type == MessageType::kChunk) {
    take_chunk();
    return {};
  }
  // The values of split training are many, but a sender waits for the receiver's answers.
  const bool bulk = type == kTypeOf<SplitValues>;
  FEDGE_TRY_VOID(watch_.control_frame(bulk ? 0 : reader_.frame().header_size));
  switch (type) {
    case MessageType::kPing:
      queue(encode_empty_frame(MessageType::kPong));
      return {};
    case MessageType::kPong:
      return {};
    case MessageType::kChunkRequest:
      return take_chunk_request();
    case MessageType::kChunkRefused:
      return take_chunk_refused();
    default:
      return take_message();
  }
}

Result<void> LinkImpl::take_message() {
  FEDGE_TRY(message, decode(reader_.frame().type, reader_.header()));
  if (const auto* goodbye = std::get_if<Goodbye>(&message)) goodbye_ = *goodbye;
  // A copy: the callback may replace the callbacks.
  const auto callbacks = callbacks_;
  if (callbacks->on_message) callbacks->on_message(message);
  return {};
}

void LinkImpl::take_chunk() {
  const auto finished = transfers_.receive(reader_.payload());
  ask_for_chunks();
  if (finished) transfers_.report(*finished);
}

Result<void> LinkImpl::take_chunk_request() {
  FEDGE_TRY(request, decode_chunk_request(reader_.header()));
  FEDGE_TRY(refused, transfers_.requested(request));
  if (refused) queue(encode_frame(*refused));
  return {};
}

Result<void> LinkImpl::take_chunk_refused() {
  FEDGE_TRY(refused, decode_chunk_refused(reader_.header()));
  FEDGE_TRY(finished, transfers_.refused(refused));
  ask_for_chunks();
  if (finished) transfers_.report(*finished, refused);
  return {};
}

}  // namespace fedge::protocol
