#include "protocol/session/detail/handshake.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "protocol/session/loop.h"

namespace fedge::protocol {

using boost::asio::ip::tcp;

void StepQueue::add(std::function<void()> step) {
  steps_.push_back(std::move(step));
  if (steps_.size() == 1) boost::asio::post(io_, [self = shared_from_this()] { self->run_one(); });
}

void StepQueue::run_one() {
  const auto step = std::move(steps_.front());
  step();
  steps_.pop_front();
  if (!steps_.empty()) boost::asio::post(io_, [self = shared_from_this()] { self->run_one(); });
}

void Handshake::start(std::chrono::steady_clock::duration time_limit, Done done) {
  done_ = std::move(done);
  timer_.expires_after(time_limit);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->abort({ErrorCode::kUnavailable, "the peer did not complete the TLS handshake in time"});
  });
  boost::asio::post(timer_.get_executor(), [self = shared_from_this()] { self->step_in_turn(); });
}

void Handshake::step_in_turn() {
  if (!queue_) return step();
  queue_->add(weakly(this, [this] { step(); }));
}

void Handshake::step() {
  if (!done_) return;
  const TlsStream::Step step = stream_.handshake();
  const auto again = [self = shared_from_this()](const boost::system::error_code&) { self->step_in_turn(); };
  switch (step.outcome) {
    case TlsStream::Outcome::kDone:
      return finish(std::move(stream_));
    case TlsStream::Outcome::kWantRead:
      return stream_.socket().async_wait(tcp::socket::wait_read, again);
    case TlsStream::Outcome::kWantWrite:
      return stream_.socket().async_wait(tcp::socket::wait_write, again);
    case TlsStream::Outcome::kClosed:
      return abort({ErrorCode::kUnavailable, "the peer closed the connection during the TLS handshake"});
    case TlsStream::Outcome::kFailed:
      return abort(stream_.failure());
  }
}

void Handshake::abort(const Error& error) {
  if (!done_) return;
  boost::system::error_code ignored;
  stream_.socket().close(ignored);
  finish(error);
}

void Handshake::finish(Result<TlsStream> result) {
  timer_.cancel();
  const Done done = std::exchange(done_, nullptr);
  done(std::move(result));
}

}  // namespace fedge::protocol
