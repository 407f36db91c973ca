#include "protocol/session/detail/link_impl.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "protocol/codec.h"

namespace fedge::protocol {

using boost::asio::ip::tcp;

LinkImpl::LinkImpl(TlsStream stream, std::string peer_address, const Timeouts& timeouts,
                   std::unique_ptr<Admission::Ticket> ticket)
    : stream_(std::move(stream)),
      peer_address_(std::move(peer_address)),
      timeouts_(timeouts),
      ticket_(std::move(ticket)),
      ticker_(stream_.socket().get_executor()),
      deadline_(stream_.socket().get_executor()),
      accepted_(ticket_ != nullptr),
      watch_(timeouts) {}

void LinkImpl::start() {
  if (phase_ == Phase::kClosed) return;
  arm_ticker();
  if (accepted_ && !authorised_ && phase_ == Phase::kOpen) {
    deadline_.expires_after(timeouts_.handshake);
    deadline_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (!error && !self->authorised_)
        self->fail({ErrorCode::kUnavailable, "the peer did not send an acceptable hello in time"});
    });
  }
  boost::asio::post(ticker_.get_executor(), [self = shared_from_this()] { self->on_readable(); });
}

void LinkImpl::set_callbacks(LinkCallbacks callbacks) {
  callbacks_ = std::make_shared<LinkCallbacks>(std::move(callbacks));
}

void LinkImpl::authorise() {
  if (phase_ != Phase::kOpen || std::exchange(authorised_, true)) return;
  if (ticket_) ticket_->let_in();
  ticket_.reset();
  deadline_.cancel();
}

void LinkImpl::send(const Message& message) {
  if (phase_ != Phase::kOpen) return;
  queue(encode_frame(message));
  flush_soon();
}

void LinkImpl::serve(const Manifest& manifest, std::shared_ptr<ChunkSource> source) {
  if (phase_ == Phase::kOpen) transfers_.serve(manifest, std::move(source));
}

void LinkImpl::fetch(const Manifest& manifest, std::shared_ptr<ChunkSink> sink,
                     std::function<void(Result<void>)> done) {
  const auto kept = std::make_shared<LinkTransfers::Done>(std::move(done));
  const auto refuse = [&](const Error& error) {
    boost::asio::post(ticker_.get_executor(), [kept, error] { (*kept)(error); });
  };
  if (phase_ != Phase::kOpen) return refuse({ErrorCode::kUnavailable, "the connection is closed"});
  if (!authorised_) return refuse({ErrorCode::kRefused, "cannot fetch from a peer that is not authorised"});
  const auto complete = transfers_.fetch(manifest, std::move(sink), kept);
  if (!complete) return refuse(complete.error());
  if (*complete)
    return boost::asio::post(ticker_.get_executor(), [self = shared_from_this(), end = *complete] { end(); });
  ask_for_chunks();
  flush_soon();
}

Result<void> LinkImpl::exchange(const Manifest& manifest, std::shared_ptr<ChunkSource> source,
                                std::shared_ptr<ChunkSink> sink, ExchangeCallbacks callbacks) {
  if (phase_ != Phase::kOpen) return Error{ErrorCode::kUnavailable, "the connection is closed"};
  FEDGE_CHECK(authorised_, "nothing is exchanged with a peer that is not authorised");
  return transfers_.exchange(manifest, std::move(source), std::move(sink), std::move(callbacks));
}

void LinkImpl::end_exchange(const ObjectId& id) {
  if (transfers_.end_exchange(id)) flush_soon();
}

bool LinkImpl::ask(const Chunk& chunk) {
  const auto request = transfers_.pick(chunk);
  if (!request) return false;
  queue(encode_frame(*request));
  flush_soon();
  return true;
}

bool LinkImpl::send_chunk(const Chunk& chunk) {
  if (!transfers_.release(chunk)) return false;
  flush_soon();
  return true;
}

bool LinkImpl::refuse_chunk(const Chunk& chunk, const Error& error) {
  if (!transfers_.withhold(chunk)) return false;
  queue(encode_frame(ChunkRefused{chunk.object, chunk.index, 1, error}));
  flush_soon();
  return true;
}

void LinkImpl::close(const std::string& reason) { begin_closing({ErrorCode::kUnavailable, reason}); }

void LinkImpl::fail(const Error& error) {
  if (phase_ != Phase::kOpen) return;
  queue(encode_frame(Goodbye{error.code, error.message}));
  begin_closing(error);
  report_closed();
}

void LinkImpl::begin_closing(const Error& error) {
  if (phase_ != Phase::kOpen) return;
  phase_ = Phase::kFlushing;
  outcome_ = error;
  transfers_.end();
  end_fetches();
  deadline_.expires_after(timeouts_.close);
  deadline_.async_wait([self = shared_from_this()](const boost::system::error_code& aborted) {
    if (!aborted) self->finish({ErrorCode::kUnavailable, "the connection did not close in time"});
  });
  flush_soon();
}

// Closes the sending side and waits for the peer to do the same. Closing a socket with unread input would
// make the system discard what the peer has not read yet.
void LinkImpl::linger() {
  phase_ = Phase::kLingering;
  stream_.shutdown();
  boost::system::error_code ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  report_closed();
}

void LinkImpl::peer_gone(const Error& error) {
  if (goodbye_) return finish({goodbye_->code, "the peer closed the connection: " + goodbye_->reason});
  finish(error);
}

void LinkImpl::finish(const Error& error) {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  if (!outcome_) outcome_ = error;
  ticket_.reset();
  transfers_.end();
  ticker_.cancel();
  deadline_.cancel();
  boost::system::error_code ignored;
  stream_.socket().close(ignored);
  end_fetches();
  report_closed();
}

void LinkImpl::end_fetches() {
  if (!transfers_.has_fetches()) return;
  boost::asio::post(ticker_.get_executor(), [self = shared_from_this()] {
    self->transfers_.fail_fetches(
        {ErrorCode::kUnavailable, "the connection ended: " + self->outcome_->message});
  });
}

void LinkImpl::report_closed() {
  if (std::exchange(closed_reported_, true)) return;
  boost::asio::post(ticker_.get_executor(), [self = shared_from_this()] {
    // Destroys what the callbacks hold, which may include this link.
    const auto callbacks = std::exchange(self->callbacks_, std::make_shared<LinkCallbacks>());
    if (callbacks->on_closed) callbacks->on_closed(*self->outcome_);
  });
}

void LinkImpl::arm_ticker() {
  ticker_.expires_after(watch_.interval());
  ticker_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && self->phase_ == Phase::kOpen) self->tick();
  });
}

void LinkImpl::tick() {
  const LinkWatch::Verdict verdict = watch_.tick({.received = traffic_.received.value(),
                                                  .written = written_,
                                                  .has_output = has_output(),
                                                  .in_hand = reader_.in_hand()});
  if (verdict.lost) return finish(*verdict.lost);
  if (verdict.at_fault) return fail(*verdict.at_fault);
  if (authorised_ && verdict.ping) {
    queue(encode_empty_frame(MessageType::kPing));
    flush_soon();
  }
  if (phase_ == Phase::kOpen) arm_ticker();
}

}  // namespace fedge::protocol
