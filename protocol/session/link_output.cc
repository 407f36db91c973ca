// The sending half of LinkImpl.
#include <boost/asio/post.hpp>
#include <utility>

#include "core/node.h"
#include "protocol/codec.h"
#include "protocol/session/detail/link_impl.h"

namespace fedge::protocol {
namespace {

// Bytes written before other links on this thread get their turn.
constexpr std::size_t kWriteTurn = 1 << 20;

}  // namespace

using boost::asio::ip::tcp;

void LinkImpl::queue(const std::string& frame) {
  if (phase_ != Phase::kOpen) return;
  if (writer_.control_size() + frame.size() > kMaxQueuedControl) {
    writer_.drop_waiting();
    begin_closing({ErrorCode::kResource, "the peer does not read: " + std::to_string(kMaxQueuedControl) +
                                             " bytes of messages are queued for it"});
    return report_closed();
  }
  writer_.queue(frame);
  traffic_.sent += Bytes(frame.size());
}

void LinkImpl::ask_for_chunks() {
  while (const auto request = transfers_.next_request()) queue(encode_frame(*request));
}

void LinkImpl::wait_writable() {
  if (std::exchange(waiting_writable_, true)) return;
  stream_.socket().async_wait(tcp::socket::wait_write,
                              [self = shared_from_this()](const boost::system::error_code&) {
                                self->waiting_writable_ = false;
                                if (std::exchange(self->read_needs_write_, false)) self->on_readable();
                                self->on_writable();
                              });
}

void LinkImpl::flush_soon() {
  if (waiting_writable_ || std::exchange(flush_posted_, true)) return;
  boost::asio::post(ticker_.get_executor(), [self = shared_from_this()] {
    self->flush_posted_ = false;
    if (!self->waiting_writable_) self->on_writable();
  });
}

void LinkImpl::on_writable() {
  if (phase_ == Phase::kLingering || phase_ == Phase::kClosed || write_broken_) return;
  for (std::size_t budget = kWriteTurn; budget > 0;) {
    const auto bytes = choose_bytes();
    if (!bytes) return finish(bytes.error());
    if (bytes->empty()) {
      if (phase_ == Phase::kFlushing) linger();
      return;
    }
    const TlsStream::Step step = stream_.write(*bytes);
    switch (step.outcome) {
      case TlsStream::Outcome::kDone:
        break;
      case TlsStream::Outcome::kWantWrite:
        writer_.set_aside();
        return wait_writable();
      case TlsStream::Outcome::kWantRead:
        writer_.set_aside();
        return;  // on_readable() will resume writing
      case TlsStream::Outcome::kClosed:
      case TlsStream::Outcome::kFailed:
        return write_failed();
    }
    writer_.wrote(step.bytes);
    written_ += step.bytes;
    budget -= std::min(budget, step.bytes);
  }
  flush_soon();
}

// Reads what the peer sent before it closed, perhaps a Goodbye with the reason.
void LinkImpl::write_failed() {
  write_broken_ = true;
  const Error error = stream_.failure();
  on_readable();
  peer_gone(error);
}

Result<std::span<const std::byte>> LinkImpl::choose_bytes() {
  while (true) {
    FEDGE_TRY(bytes, writer_.next());
    if (!bytes.empty()) return bytes;
    auto next = transfers_.next();
    if (!next) return bytes;
    if (const auto* refused = std::get_if<ChunkRefused>(&*next)) {
      queue(encode_frame(*refused));
      continue;
    }
    const auto& due = std::get<ChunkSender::Due>(*next);
    const auto begun = writer_.begin_chunk(due);
    if (begun)
      traffic_.sent += Bytes(*begun);
    else
      queue(encode_frame(transfers_.give_up(due, begun.error())));
  }
}

}  // namespace fedge::protocol
