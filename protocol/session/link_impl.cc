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
      accepted_(ticket_ != nullptr) {}

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
  if (phase_ == Phase::kOpen) sender_.serve(manifest, std::move(source));
}

void LinkImpl::stop_serving(const ObjectId& id) { sender_.stop_serving(id); }

void LinkImpl::fetch(const Manifest& manifest, std::shared_ptr<ChunkSink> sink,
                     std::function<void(Result<void>)> done) {
  const auto refuse = [&](const Error& error) {
    boost::asio::post(ticker_.get_executor(), [done = std::move(done), error] { done(error); });
  };
  if (phase_ != Phase::kOpen) return refuse({ErrorCode::kUnavailable, "the connection is closed"});
  if (!authorised_) return refuse({ErrorCode::kRefused, "cannot fetch from a peer that is not authorised"});
  const auto complete = fetches_.add(manifest, std::move(sink));
  if (!complete) return refuse(complete.error());
  const ObjectId id = manifest.id();
  const auto held = std::make_shared<std::function<void(Result<void>)>>(std::move(done));
  fetch_done_[id] = held;
  if (!*complete) {
    ask_for_chunks();
    return flush_soon();
  }
  boost::asio::post(ticker_.get_executor(), [self = shared_from_this(), id, weak = std::weak_ptr(held)] {
    const auto known = self->fetch_done_.find(id);
    if (known != self->fetch_done_.end() && known->second == weak.lock()) self->end_fetch(id, {});
  });
}

void LinkImpl::cancel_fetch(const ObjectId& id) {
  fetch_done_.erase(id);
  fetches_.cancel(id);
}

Result<void> LinkImpl::exchange(const Manifest& manifest, std::shared_ptr<ChunkSource> source,
                                std::shared_ptr<ChunkSink> sink, ExchangeCallbacks callbacks) {
  if (phase_ != Phase::kOpen) return Error{ErrorCode::kUnavailable, "the connection is closed"};
  FEDGE_CHECK(authorised_, "nothing is exchanged with a peer that is not authorised");
  FEDGE_TRY_VOID(fetches_.exchange(manifest, std::move(sink)));
  sender_.exchange(manifest, std::move(source));
  exchanges_[manifest.id()] = std::make_shared<ExchangeCallbacks>(std::move(callbacks));
  return {};
}

void LinkImpl::end_exchange(const ObjectId& id) {
  if (exchanges_.erase(id) == 0) return;
  fetches_.cancel(id);
  sender_.stop_serving(id);
  flush_soon();
}

bool LinkImpl::ask(const Chunk& chunk) {
  if (!exchanges_.contains(chunk.object)) return false;
  const auto request = fetches_.pick(chunk.object, chunk.index);
  if (!request) return false;
  queue(encode_frame(*request));
  flush_soon();
  return true;
}

bool LinkImpl::send_chunk(const Chunk& chunk) {
  if (!sender_.release(chunk)) return false;
  flush_soon();
  return true;
}

bool LinkImpl::refuse_chunk(const Chunk& chunk, const Error& error) {
  if (!sender_.withhold(chunk)) return false;
  queue(encode_frame(ChunkRefused{chunk.object, chunk.index, 1, error}));
  flush_soon();
  return true;
}

std::shared_ptr<ExchangeCallbacks> LinkImpl::exchange_of(const ObjectId& id) const {
  const auto known = exchanges_.find(id);
  return known == exchanges_.end() ? nullptr : known->second;
}

void LinkImpl::end_fetch(const ObjectId& id, const Result<void>& outcome) {
  const auto node = fetch_done_.extract(id);
  if (!node.empty()) (*node.mapped())(outcome);
}

void LinkImpl::close(const std::string& reason) { begin_closing({ErrorCode::kUnavailable, reason}); }

void LinkImpl::fail(const Error& error) {
  if (phase_ != Phase::kOpen) return;
  queue(encode_frame(Goodbye{error.code, error.message}));
  begin_closing(error);
  report_closed();
}

void LinkImpl::drop(const Error& error) { finish(error); }

void LinkImpl::begin_closing(const Error& error) {
  if (phase_ != Phase::kOpen) return;
  phase_ = Phase::kFlushing;
  outcome_ = error;
  sender_ = ChunkSender();
  fetches_ = FetchSet();
  exchanges_.clear();
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
  sender_ = ChunkSender();
  fetches_ = FetchSet();
  exchanges_.clear();
  ticker_.cancel();
  deadline_.cancel();
  boost::system::error_code ignored;
  stream_.socket().close(ignored);
  end_fetches();
  report_closed();
}

void LinkImpl::end_fetches() {
  if (fetch_done_.empty()) return;
  boost::asio::post(ticker_.get_executor(), [self = shared_from_this()] {
    const Error error{ErrorCode::kUnavailable, "the connection ended: " + self->outcome_->message};
    while (!self->fetch_done_.empty()) self->end_fetch(ObjectId(self->fetch_done_.begin()->first), error);
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
  ticker_.expires_after(timeouts_.ping / 4);
  ticker_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && self->phase_ == Phase::kOpen) self->tick();
  });
}

// Counts ticks instead of comparing times: a program that was stopped or busy for a while first reads what
// has arrived before it declares its peer dead.
void LinkImpl::tick() {
  const auto idle_ticks = static_cast<int>(timeouts_.idle / (timeouts_.ping / 4));
  const std::uint64_t received = traffic_.received.value();
  silent_ticks_ = received == received_before_ ? silent_ticks_ + 1 : 0;
  stalled_ticks_ = has_output() && written_ == written_before_ ? stalled_ticks_ + 1 : 0;
  received_before_ = received;
  written_before_ = written_;
  control_frames_ = 0;
  control_bytes_ = 0;
  const std::string time =
      std::to_string(std::chrono::duration_cast<std::chrono::seconds>(timeouts_.idle).count());
  if (silent_ticks_ >= idle_ticks)
    return finish({ErrorCode::kUnavailable, "the peer has sent nothing for " + time + " s"});
  if (stalled_ticks_ >= idle_ticks)
    return finish({ErrorCode::kUnavailable, "the peer has not read any bytes for " + time + " s"});
  if (too_slow())
    return fail({ErrorCode::kResource,
                 "the peer sends fewer than " + std::to_string(kMinBytesPerSecond) + " bytes per second"});
  if (authorised_ && silent_ticks_ > 0 && silent_ticks_ % 4 == 0) {
    queue(encode_empty_frame(MessageType::kPing));
    flush_soon();
  }
  if (phase_ == Phase::kOpen) arm_ticker();
}

// Limits only the incoming rate. Output may be slow because thousands of peers get data at the same time,
// and the data waiting for it is bounded.
bool LinkImpl::too_slow() {
  frame_ticks_ = reader_.in_hand() > 0 ? frame_ticks_ + 1 : 0;
  const std::chrono::milliseconds counted = frame_ticks_ * (timeouts_.ping / 4) - timeouts_.slow_grace;
  if (counted.count() <= 0) return false;
  return reader_.in_hand() < static_cast<std::uint64_t>(counted.count()) * kMinBytesPerSecond / 1000;
}

}  // namespace fedge::protocol
